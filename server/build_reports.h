// Takes in the reports of build-only workers. A build is checked and kept by a thread beside the
// deciding one, and its trial is then leased to a device. A candidate that does not build ends its trial
// without a device, provided that the worker has shown that it can build; otherwise another worker tries it
// first. Thread rule: thread-compatible. No call blocks.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/job_store.h"
#include "db/log_readers.h"
#include "db/log_writer.h"
#include "proto/worker.pb.h"
#include "server/artifact_store.h"
#include "server/build_queue.h"
#include "server/job_board.h"
#include "server/lease_tickets.h"
#include "server/reply.h"
#include "server/time_source.h"
#include "server/worker_table.h"

namespace mycc {

class BuildReports {
 public:
  struct Parts {
    BuildQueue* queue;
    ArtifactStore* store;
    JobStore* log;
    LeaseQueue* trials;
    JobBoard* board;
    WorkerTable* workers;
    const LeaseTickets* tickets;
    const TimeSource* time;
    WriteExecutor write;
    ReadExecutor read;
    // Counts an impossible statement of a worker.
    std::function<void(WorkerTable::Session*, const std::string& what)> count_refusal;
  };
  explicit BuildReports(Parts parts) : parts_(std::move(parts)) {}

  // REQUIRES: the session was heard now.
  void Report(const v1::ReportBuildsRequest& request, Reply<v1::ReportBuildsResponse> reply);

 private:
  struct Call {
    std::string session, worker;
    Reply<v1::ReportBuildsResponse> reply;
    v1::ReportBuildsResponse response;
    size_t open = 0;  // not yet answered
  };
  using CallPtr = std::shared_ptr<Call>;
  // A report whose order stands, with what was ordered.
  struct Pending {
    CallPtr call;
    v1::BuildReport report;
    Grant order;
    v1::Assignment assignment;  // workload, target, trace and protocol alone
  };
  using PendingPtr = std::shared_ptr<Pending>;

  void Take(const CallPtr& call, const v1::BuildReport& report);
  // The order of a report that comes late, for a trial that still waits to be built.
  std::optional<Grant> OrderAgain(const Call& call, const v1::LeaseId& lease);
  void TakeStanding(const CallPtr& call, const v1::BuildReport& report, const Grant& order);
  void TakeArtifact(const PendingPtr& pending);
  void OnKept(const Pending& pending, const absl::StatusOr<std::string>& digest);
  void TakeUnfit(const Pending& pending);
  void TakeFailure(const PendingPtr& pending);
  bool IsDoubted(const Pending& pending);
  // Writes the trial's end into the log.
  void EndTrial(const PendingPtr& pending);
  v1::MeasureResult ResultOf(const Pending& pending) const;
  // Judges the worker by an outcome of its build, and those whose failures were doubted.
  void Judge(const Pending& pending, v1::MeasureStatus status);

  void Answer(const CallPtr& call, const v1::LeaseId& lease, v1::ReportAnswer::Kind kind,
              const std::string& reason = "");
  void Close(const CallPtr& call);

  const Parts parts_;
};

}  // namespace mycc
