// Grants leases. A Lease call waits here until there is a trial for its device. A grant is decided in memory
// at once, and answered when it is in the log. When it cannot be written, or the caller has gone, the trials
// return to the queue. Thread rule: thread-compatible. No call blocks.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "db/job_store.h"
#include "db/log_writer.h"
#include "proto/worker.pb.h"
#include "server/build_farm.h"
#include "server/job_board.h"
#include "server/lease_queue.h"
#include "server/lease_tickets.h"
#include "server/losses.h"
#include "server/reply.h"
#include "server/time_source.h"
#include "server/worker_table.h"

namespace mycc {

struct LeasingOptions {
  uint32_t max_trials = 256;     // a call
  double max_wait_seconds = 60;  // of a call
};

class Leasing {
 public:
  Leasing(LeasingOptions options, JobStore* store, LeaseQueue* queue, JobBoard* board, WorkerTable* workers,
          Losses* losses, BuildFarm* builds, const LeaseTickets* tickets, const TimeSource* time,
          WriteExecutor write);

  // REQUIRES: the session was heard now.
  void Lease(const v1::LeaseRequest& request, IsAlive alive, Reply<v1::LeaseResponse> reply);
  // Tries to serve the calls that wait.
  void Serve();
  // Answers the calls that wait.
  void RefuseWaiting(const absl::Status& status);

 private:
  struct Call {
    v1::LeaseRequest request;
    IsAlive alive;
    Reply<v1::LeaseResponse> reply;
    double until;
  };
  // The grants of one call that are being written to the log.
  struct Granting {
    Call call;
    std::vector<Grant> grants, written, refused;
    size_t open = 0;       // not yet written, nor refused
    absl::Status refusal;  // of the refused ones
  };

  // True when the call has its answer.
  bool Answer(const Call& call);
  std::vector<Grant> Grants(WorkerTable::Session* session, const v1::LeaseRequest& request);
  // Whether code for a target can be measured on a device, by the texts of both.
  bool IsMeasurable(const std::string& code, const v1::JobSpec& spec, const WorkerTable::Device& device);
  bool MayTry(const std::string& worker, const QueuedWork& work) const;
  void Write(const std::shared_ptr<Granting>& granting);
  void OnWritten(const std::shared_ptr<Granting>& granting, const Grant& grant, const absl::Status& status);
  void Deliver(const Granting& granting);

  const LeasingOptions options_;
  JobStore* const store_;
  LeaseQueue* const queue_;
  JobBoard* const board_;
  WorkerTable* const workers_;
  Losses* const losses_;
  BuildFarm* const builds_;
  const LeaseTickets* const tickets_;
  const TimeSource* const time_;
  const WriteExecutor write_;
  std::list<Call> waiting_;
  // Kinds of devices for which no trial waits, while those that wait are looked at: in a farm of many kinds,
  // hundreds of devices wait while trials for others come and go.
  std::set<std::string> idle_kinds_;
  // By the texts of a code's target and a device's: the code's target, where the device can measure it.
  std::map<std::pair<std::string, std::string>, std::optional<Target>> measurable_;
  uint64_t additions_seen_ = 0;  // of the queue, when those that wait were last looked at
  double look_at_ = 0;           // then they are looked at in any case
};

}  // namespace mycc
