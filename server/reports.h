// Takes in what workers report. A report counts under a current lease, is judged at once, and ends its trial
// when its result is in the log; a report is answered when each of its results is. One that cannot be written
// leaves its lease as it was, and the worker reports again. Thread rule: thread-compatible. Nothing here
// blocks.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "db/job_store.h"
#include "db/log_writer.h"
#include "proto/worker.pb.h"
#include "server/job_board.h"
#include "server/lease_queue.h"
#include "server/losses.h"
#include "server/reply.h"
#include "server/time_source.h"
#include "server/worker_table.h"

namespace mycc {

class Reports {
 public:
  Reports(JobStore* store, LeaseQueue* queue, JobBoard* board, WorkerTable* workers, Losses* losses,
          const TimeSource* time, WriteExecutor write)
      : store_(store),
        queue_(queue),
        board_(board),
        workers_(workers),
        losses_(losses),
        time_(time),
        write_(std::move(write)) {}

  // REQUIRES: the session was heard now.
  void Report(const v1::ReportRequest& request, Reply<v1::ReportResponse> reply);

 private:
  // A request, some of whose results are on their way into the log.
  struct Call {
    std::string session, worker;
    Reply<v1::ReportResponse> reply;
    v1::ReportResponse response;
    size_t open = 0;      // not yet answered
    absl::Status failed;  // of one that could not be written
  };
  using CallPtr = std::shared_ptr<Call>;

  void Take(const CallPtr& call, const v1::Report& report);
  void TakeLoss(const CallPtr& call, const v1::Report& report, const Grant& grant);
  void TakeRound(const CallPtr& call, const v1::Report& report, const Grant& grant);
  void TakeResult(const CallPtr& call, const v1::Report& report);
  // Ends the trial when the result is in the log.
  void Keep(const CallPtr& call, const std::shared_ptr<FinishedTrial>& finished);
  void OnKept(const CallPtr& call, const FinishedTrial& finished);
  void Judge(const std::string& session, const v1::MeasureResult& result);

  // The answer to one report.
  void Kept(const CallPtr& call) { Close(call); }
  void Ignored(const CallPtr& call, const v1::LeaseId& lease);
  void NotNow(const CallPtr& call, const absl::Status& why);
  // Its result could not be written: it is held as before.
  void HoldAgain(const CallPtr& call, const v1::LeaseId& lease, const absl::Status& why);
  void Close(const CallPtr& call);

  JobStore* const store_;
  LeaseQueue* const queue_;
  JobBoard* const board_;
  WorkerTable* const workers_;
  Losses* const losses_;
  const TimeSource* const time_;
  const WriteExecutor write_;
  std::set<std::string> being_written_;  // trials
};

}  // namespace mycc
