#include "server/reports.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/names.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

// A worker's words are kept as text, whatever they are; how its times rank is not its to say.
v1::MeasureResult Mended(v1::MeasureResult result) {
  if (result.has_timing()) {
    result.mutable_timing()->clear_final_round();
    result.mutable_timing()->clear_rank_seconds();
  }
  result.set_error(ToUtf8(result.error()));
  result.set_reproduction(ToUtf8(result.reproduction()));
  return result;
}

// What is kept in the place of a result that cannot be.
v1::MeasureResult Unfit(const std::string& worker, const absl::Status& why) {
  v1::MeasureResult unfit;
  unfit.set_status(v1::MEASURE_STATUS_RUN_ERROR);
  unfit.set_error(absl::StrCat("the result of worker ", worker, " was refused: ", why.message()));
  unfit.mutable_device()->set_worker(ToUtf8(worker));
  return unfit;
}

absl::Status Finish(JobStore* store, const FinishedTrial& finished) {
  MYCC_ASSIGN_OR_RETURN(const auto recorded, store->FinishTrials({&finished, 1}));
  return recorded[0].status();
}

}  // namespace

void Reports::Report(const v1::ReportRequest& request, Reply<v1::ReportResponse> reply) {
  auto call = std::make_shared<Call>();
  call->session = request.session();
  call->worker = workers_->Find(request.session())->worker;
  call->reply = std::move(reply);
  call->open = 1 + request.reports_size();  // one is this function's, so that the last is not over too early
  for (const v1::Report& report : request.reports()) Take(call, report);
  Close(call);
}

void Reports::Take(const CallPtr& call, const v1::Report& report) {
  const v1::LeaseId& lease = report.lease();
  const Grant* const grant = queue_->Find(lease.trial(), lease.attempt());
  const bool is_loss = IsInfrastructureFailure(report.result().status());
  if (grant == nullptr) {
    // One of a job that has ended meanwhile counts as well: the log decides by its attempt, and keeps a
    // result that was paid for.
    const absl::StatusOr<TrialId> id = ParseTrialName(lease.trial());
    if (id.ok() && !board_->IsRunning(id->job) && !is_loss) {
      TakeResult(call, report);
    } else {
      Ignored(call, lease);
    }
  } else if (being_written_.contains(lease.trial())) {
    NotNow(call, absl::UnavailableError("this result was reported before and is on its way into the log"));
  } else if (grant->state != LeaseState::kHeld) {
    Ignored(call, lease);  // its lease has run out, and the log is still to hear of it
  } else if (is_loss) {
    TakeLoss(call, report, *grant);
  } else if (grant->trial.is_round()) {
    TakeRound(call, report, *grant);
  } else {
    TakeResult(call, report);
  }
}

void Reports::TakeLoss(const CallPtr& call, const v1::Report& report, const Grant& grant) {
  Judge(call->session, report.result());
  losses_->Lose(grant, report.result().status(),
                absl::StrCat("worker ", call->worker, ": ", ToUtf8(report.result().error())));
  Kept(call);
}

void Reports::TakeRound(const CallPtr& call, const v1::Report& report, const Grant& grant) {
  std::vector<v1::MeasureResult> results = {Mended(report.result())};
  for (const v1::MeasureResult& rival : report.rivals()) results.push_back(Mended(rival));
  const v1::LeaseId lease = report.lease();
  const std::string job = grant.trial.job;
  queue_->Settle(lease.trial(), lease.attempt());
  being_written_.insert(lease.trial());
  board_->FinishRound(job, lease.trial(), results,
                      [this, call, lease, result = results[0]](const absl::Status& status) {
                        being_written_.erase(lease.trial());
                        if (!status.ok()) {
                          HoldAgain(call, lease, status);
                          return;
                        }
                        queue_->Finish(lease.trial(), lease.attempt());
                        Judge(call->session, result);
                        Kept(call);
                      });
}

void Reports::TakeResult(const CallPtr& call, const v1::Report& report) {
  auto finished = std::make_shared<FinishedTrial>();
  *finished = {report.lease().trial(), report.lease().attempt(), Mended(report.result())};
  queue_->Settle(finished->trial, finished->attempt);
  being_written_.insert(finished->trial);
  Keep(call, finished);
}

void Reports::Keep(const CallPtr& call, const std::shared_ptr<FinishedTrial>& finished) {
  write_(
      [store = store_, worker = call->worker, finished] {
        const absl::Status status = Finish(store, *finished);
        if (!absl::IsInvalidArgument(status)) return status;
        // A result that cannot be kept still ends the trial, with the reason in its place.
        finished->result = Unfit(worker, status);
        return Finish(store, *finished);
      },
      [this, call, finished](const absl::Status& status) {
        being_written_.erase(finished->trial);
        v1::LeaseId lease;
        lease.set_trial(finished->trial);
        lease.set_attempt(finished->attempt);
        if (status.ok()) {
          OnKept(call, *finished);
        } else if (absl::IsFailedPrecondition(status) || absl::IsNotFound(status)) {
          queue_->Finish(finished->trial, finished->attempt);
          Ignored(call, lease);
        } else {
          HoldAgain(call, lease, status);
        }
      });
}

void Reports::OnKept(const CallPtr& call, const FinishedTrial& finished) {
  Judge(call->session, finished.result);
  const absl::StatusOr<TrialId> id = ParseTrialName(finished.trial);
  // Otherwise its job has ended.
  if (queue_->Finish(finished.trial, finished.attempt) && id.ok()) board_->OnFinished(*id, finished.result);
  Kept(call);
}

void Reports::Judge(const std::string& session, const v1::MeasureResult& result) {
  WorkerTable::Session* const found = workers_->Find(session);
  if (found != nullptr) workers_->Judge(found, result.device().device(), result, time_->Seconds());
}

void Reports::Ignored(const CallPtr& call, const v1::LeaseId& lease) {
  *call->response.add_ignored() = lease;
  Close(call);
}

void Reports::NotNow(const CallPtr& call, const absl::Status& why) {
  call->failed = why;
  Close(call);
}

void Reports::HoldAgain(const CallPtr& call, const v1::LeaseId& lease, const absl::Status& why) {
  queue_->Unsettle(lease.trial(), lease.attempt(), time_->Seconds());
  NotNow(call, why);
}

void Reports::Close(const CallPtr& call) {
  if (--call->open > 0) return;
  if (!call->failed.ok()) {
    call->reply(call->failed);
    return;
  }
  WorkerTable::Session* const session = workers_->Find(call->session);
  if (session != nullptr) *call->response.mutable_instructions() = workers_->TakeInstructions(session);
  call->reply(std::move(call->response));
}

}  // namespace mycc
