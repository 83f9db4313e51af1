// Gives orders to build-only workers. A call waits here until there is an order for its targets. A candidate
// that was built before, for another job or before a restart, is not built again. Thread rule:
// thread-compatible. No call blocks.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/worker.pb.h"
#include "server/artifact_store.h"
#include "server/build_queue.h"
#include "server/job_board.h"
#include "server/lease_tickets.h"
#include "server/reply.h"
#include "server/time_source.h"
#include "server/worker_table.h"

namespace mycc {

class BuildLeasing {
 public:
  BuildLeasing(BuildQueue* queue, ArtifactStore* store, JobBoard* board, WorkerTable* workers,
               const LeaseTickets* tickets, const TimeSource* time)
      : queue_(queue), store_(store), board_(board), workers_(workers), tickets_(tickets), time_(time) {}

  // REQUIRES: the session was heard now.
  void Lease(const v1::LeaseBuildsRequest& request, IsAlive alive, Reply<v1::LeaseBuildsResponse> reply);
  // Tries to serve the calls that wait.
  void Serve();
  // Answers the calls that wait.
  void RefuseWaiting(const absl::Status& status);

 private:
  struct Call {
    v1::LeaseBuildsRequest request;
    IsAlive alive;
    Reply<v1::LeaseBuildsResponse> reply;
    double until;
  };

  // True when the call has its answer.
  bool Answer(const Call& call);
  std::vector<v1::BuildOrder> Orders(WorkerTable::Session* session, int count);

  BuildQueue* const queue_;
  ArtifactStore* const store_;
  JobBoard* const board_;
  WorkerTable* const workers_;
  const LeaseTickets* const tickets_;
  const TimeSource* const time_;
  std::list<Call> waiting_;
  uint64_t additions_seen_ = 0;  // of the queue, when those that wait were last looked at
  double look_at_ = 0;           // then they are looked at in any case
};

}  // namespace mycc
