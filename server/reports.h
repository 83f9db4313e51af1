// Takes in workers' reports. A report counts while its lease stands, and when its worker shows the lease's
// ticket or is its holder. It is judged at once, and ends its trial when the result is in the log. Each
// report gets an answer of its own; the request is answered when all have theirs. A result that cannot be
// written now leaves its lease as it was, and the worker reports it again. Thread rule: thread-compatible. No
// call blocks.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/event.h"
#include "db/job_store.h"
#include "db/log_writer.h"
#include "proto/worker.pb.h"
#include "server/build_farm.h"
#include "server/job_board.h"
#include "server/job_ledger.h"
#include "server/lease_queue.h"
#include "server/lease_tickets.h"
#include "server/losses.h"
#include "server/reply.h"
#include "server/result_check.h"
#include "server/service_counters.h"
#include "server/time_source.h"
#include "server/worker_table.h"

namespace mycc {

class Reports {
 public:
  // `log` hears of each result, and of refusals; it may be null.
  Reports(JobStore* store, LeaseQueue* queue, JobBoard* board, WorkerTable* workers, Losses* losses,
          BuildFarm* builds, const LeaseTickets* tickets, const TimeSource* time, WriteExecutor write,
          EventLog log)
      : store_(store),
        queue_(queue),
        board_(board),
        workers_(workers),
        losses_(losses),
        builds_(builds),
        tickets_(tickets),
        time_(time),
        write_(std::move(write)),
        log_(std::move(log)) {}

  // REQUIRES: the session was heard now.
  void Report(const v1::ReportRequest& request, Reply<v1::ReportResponse> reply);
  // Counts an impossible statement of a worker, or one that is not the worker's to make.
  void CountRefusal(WorkerTable::Session* session, const std::string& what);
  // Why a result of the job cannot be stored; empty: all could be.
  std::string TroubleOf(const std::string& job) const;
  // Since the start: trials and refusals.
  const ServiceCounters& counters() const { return counters_; }

 private:
  // A request with results that are being written to the log.
  struct Call {
    std::string session;
    bool knows_answers = false;  // the worker does
    Reply<v1::ReportResponse> reply;
    v1::ReportResponse response;
    size_t open = 0;  // not yet answered
    std::string not_now;
  };
  using CallPtr = std::shared_ptr<Call>;
  // A report whose lease stands.
  struct Held {
    const CallPtr& call;
    const v1::Report& report;
    const Grant& grant;
    WorkerTable::Session* session;
    const JobLedger& ledger;
    const Expectation& expected;

    const PlannedTask& task() const { return ledger.plan().tasks[grant.work.task]; }
    const std::string& device() const { return expected.offer.device(); }
  };
  // A result that is being written to the log.
  struct Pending {
    CallPtr call;
    v1::LeaseId lease;
    FinishedTrial finished;
    // For a running job's trial: its device, the comparable trials, and where it failed before.
    std::string worker, device, line;
    Target code;
    v1::TimingProtocol protocol = v1::TIMING_PROTOCOL_UNSPECIFIED;
    QueuedWork work;
  };
  using PendingPtr = std::shared_ptr<Pending>;

  void Take(const CallPtr& call, const v1::Report& report, bool is_genuine);
  void TakeHeld(const CallPtr& call, const v1::Report& report, const Grant& grant);
  void TakeImpossible(const Held& held, const absl::Status& why);
  void TakeLoss(const Held& held);
  void TakeRound(const Held& held);
  // A doubted failure: the trial is tried elsewhere.
  void TakeDoubted(const Held& held);
  // A failure that may be the build's: whoever measures the trial next builds it.
  void TakeDoubtedBuild(const Held& held);
  void TakeResult(const Held& held);
  // A result for a job that has ended: the log keeps it, since it was paid for.
  void TakeLate(const CallPtr& call, const v1::Report& report);
  bool IsDoubted(const Held& held) const;

  PendingPtr PendingOf(const Held& held) const;
  void Keep(const PendingPtr& pending, LogWrite write);
  void OnWritten(const PendingPtr& pending, const absl::Status& status);
  void OnKept(const Pending& pending);
  void OnUnfit(const Pending& pending, const absl::Status& why);
  void Judge(const Pending& pending);

  // The answer to one report.
  void Answer(const CallPtr& call, const v1::LeaseId& lease, v1::ReportAnswer::Kind kind,
              const std::string& reason = "");
  // The result could not be written: the lease is held as before.
  void HoldAgain(const CallPtr& call, const v1::LeaseId& lease, const absl::Status& why);
  void Close(const CallPtr& call);

  JobStore* const store_;
  LeaseQueue* const queue_;
  JobBoard* const board_;
  WorkerTable* const workers_;
  Losses* const losses_;
  BuildFarm* const builds_;
  const LeaseTickets* const tickets_;
  const TimeSource* const time_;
  const WriteExecutor write_;
  const EventLog log_;
  ServiceCounters counters_;
  std::set<std::string> being_written_;          // trials
  std::map<std::string, std::string> troubles_;  // why a trial's result was not kept, by trial
};

}  // namespace mycc
