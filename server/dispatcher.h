// Between the workers and the queue: who gets which trial, whose results count, and what happens when a
// worker goes silent.
//
// What is decided is written to the log before it is answered: a grant before the worker hears of it, a
// result before it is acknowledged. A report counts when its attempt is the trial's current one; afterwards
// the worker may forget it. Thread rule: thread-compatible. Every call answers at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/baseline_store.h"
#include "db/job_store.h"
#include "db/log_writer.h"
#include "db/tuning_log.h"
#include "proto/tuning.pb.h"
#include "proto/worker.pb.h"
#include "server/job_board.h"
#include "server/lease_queue.h"
#include "server/time_source.h"
#include "server/worker_table.h"

namespace mycc {

struct DispatcherOptions {
  double lease_seconds = 20;
  uint32_t max_losses = 3;     // then a candidate is quarantined
  uint32_t max_attempts = 10;  // from then on every loss is blamed on the candidate
  uint32_t max_lease = 256;    // trials a call
};

class Dispatcher {
 public:
  Dispatcher(DispatcherOptions options, TuningLog* log, LeaseQueue* queue, JobBoard* board,
             const TimeSource* time, WriteExecutor write);

  // In all of these, NotFound: the session is unknown.
  absl::StatusOr<v1::RegisterResponse> Register(const v1::RegisterRequest& request);
  // Without trials when there are none for the device now.
  absl::StatusOr<v1::LeaseResponse> Lease(const v1::LeaseRequest& request);
  // Many reports, one transaction; answers in the order of the requests.
  std::vector<absl::StatusOr<v1::ReportResponse>> Report(const std::vector<v1::ReportRequest>& requests);
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(const v1::HeartbeatRequest& request);
  absl::StatusOr<v1::LeaveResponse> Leave(const v1::LeaveRequest& request);

  std::vector<v1::DeviceStatus> Devices() const;
  bool AnyFits(const Target& code) const { return workers_.AnyFits(code); }
  // Ends the leases that ran out, forgets the workers that went silent.
  void Tick();

 private:
  absl::StatusOr<WorkerTable::Session*> Hear(const std::string& session);
  v1::Assignment AssignmentOf(const Grant& grant, const ActiveJob& job) const;
  // What the worker held under its name and does not know of any more died with its process.
  void LoseAllOf(const std::string& worker, const v1::HostState& host,
                 const std::optional<WorkerTable::Session>& replaced);
  void ReturnOrLose(const Grant& grant, const std::string& worker, const std::string& accident);
  // A lease that ended without a word on the candidate, which is blamed for it.
  void Lose(const Grant& grant, v1::MeasureStatus status, const std::string& evidence);
  void Quarantine(const Grant& grant, v1::MeasureStatus status, const std::string& evidence);
  void ReturnUntouched(const Grant& grant);
  // A report that counts, on its way into the log.
  struct Accepted {
    WorkerTable::Session* session;
    size_t request;
    v1::LeaseId lease;
  };
  bool IsCurrent(const v1::Report& report) const;
  // A final round, likewise.
  struct HeldRound {
    WorkerTable::Session* session;
    size_t request;
    std::string job;
    const v1::Report* report;
  };
  absl::Status SettleRound(const HeldRound& held);
  void Settle(const Accepted& accepted, FinishedTrial finished, absl::Status recorded,
              v1::ReportResponse* answer);
  double UsualBaseline(const v1::DeviceOffer& offer) const;
  void SaveBaselines(const WorkerTable::Session& session);

  const DispatcherOptions options_;
  TuningLog* const log_;
  JobStore store_;
  BaselineStore baselines_;
  LeaseQueue* const queue_;
  JobBoard* const board_;
  const TimeSource* const time_;
  const WriteExecutor write_;
  WorkerTable workers_;
};

}  // namespace mycc
