// A report passes four steps: its lease is looked up, its result is checked, judged, and written; each step
// may answer it.
#include "server/reports.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/names.h"
#include "proto/reproduction.h"
#include "proto/utf8.h"
#include "server/assignment.h"
#include "server/ceilings.h"
#include "server/result_keeping.h"
#include "server/trial_events.h"

namespace mycc {
namespace {

// Trials are comparable that are of one job and for one target.
std::string LineOf(const QueuedWork& work) { return absl::StrCat(work.job, "\n", work.target); }

// The device is the one that leased the trial, or the one that the worker names where that is not known any
// more. It has no name where the worker has not registered it.
Expectation SourceOf(const WorkerTable::Session& session, const std::string& leased_by,
                     const v1::MeasureResult& result) {
  const auto found = session.devices.find(leased_by.empty() ? result.device().device() : leased_by);
  return {.worker = session.worker,
          .offer = found == session.devices.end() ? v1::DeviceOffer() : found->second.offer};
}

// A worker's words are kept as text, whatever they are. How its times rank, whose they are and how they are
// reproduced is not its to say.
v1::MeasureResult Sanitized(v1::MeasureResult result, const Expectation& source) {
  if (result.has_timing()) {
    result.mutable_timing()->clear_final_round();
    result.mutable_timing()->clear_rank_seconds();
  }
  result.set_error(ToUtf8(result.error()));
  result.clear_reproduction();
  result.mutable_device()->set_worker(ToUtf8(source.worker));
  result.mutable_device()->set_device(ToUtf8(source.offer.device()));
  return result;
}

// The results of a report, as they are kept.
std::vector<v1::MeasureResult> ResultsOf(const v1::Report& report, const Expectation& source,
                                         v1::Assignment assignment) {
  const std::vector<std::string> rivals(assignment.rivals().begin(), assignment.rivals().end());
  assignment.clear_rivals();  // each is reproduced by itself
  std::vector<v1::MeasureResult> results = {Sanitized(report.result(), source)};
  for (const v1::MeasureResult& rival : report.rivals()) results.push_back(Sanitized(rival, source));
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].status() == v1::MEASURE_STATUS_OK) continue;
    if (i > 0 && i <= rivals.size()) assignment.set_trace(rivals[i - 1]);
    results[i].set_reproduction(ReproductionOf(assignment));
  }
  return results;
}

double RunSecondsOf(const FinishedTrial& finished) { return finished.result.timing().run_seconds(); }

std::string WordsOf(const v1::MeasureResult& result) {
  return absl::StrCat(StatusName(result.status()), ": ", ToUtf8(result.error()));
}

}  // namespace

void Reports::Report(const v1::ReportRequest& request, Reply<v1::ReportResponse> reply) {
  const WorkerTable::Session* const session = workers_->Find(request.session());
  auto call = std::make_shared<Call>();
  call->session = session->id;
  call->knows_answers = session->names_what_it_holds;
  call->reply = std::move(reply);
  call->open = 1 + request.reports_size();  // one is this function's, so that the last is not over too early
  for (const v1::Report& report : request.reports()) {
    const v1::LeaseId& lease = report.lease();
    const bool is_genuine = tickets_->IsGenuine(lease);
    if (!is_genuine && !lease.ticket().empty()) {
      CountRefusal(workers_->Find(call->session),
                   absl::StrCat("a report with a wrong ticket for ", lease.trial()));
      Answer(call, lease, v1::ReportAnswer::REFUSED, "its ticket is not the lease's");
    } else {
      Take(call, report, is_genuine);
    }
  }
  Close(call);
}

void Reports::CountRefusal(WorkerTable::Session* session, const std::string& what) {
  const int64_t count = ++session->refused;
  ++counters_.refused;
  const bool is_news = (count & (count - 1)) == 0;  // the first, second, fourth, eighth, ...
  if (log_ && is_news) log_(RefusalEvent(session->worker, what, count));
}

void Reports::Take(const CallPtr& call, const v1::Report& report, bool is_genuine) {
  const v1::LeaseId& lease = report.lease();
  const Grant* const grant = queue_->Find(lease.trial(), lease.attempt());
  if (grant != nullptr && grant->holder != call->session && !is_genuine) {
    CountRefusal(workers_->Find(call->session),
                 absl::StrCat("a report of another worker's lease of ", lease.trial()));
    Answer(call, lease, v1::ReportAnswer::REFUSED, "the lease is another worker's");
  } else if (being_written_.contains(lease.trial())) {
    Answer(call, lease, v1::ReportAnswer::NOT_NOW, "it was reported before and is on its way into the log");
  } else if (grant != nullptr && grant->state == LeaseState::kHeld) {
    TakeHeld(call, report, *grant);
  } else if (grant == nullptr && is_genuine) {
    TakeLate(call, report);
  } else {
    Answer(call, lease, v1::ReportAnswer::IGNORED, "the lease had ended");
  }
}

void Reports::TakeHeld(const CallPtr& call, const v1::Report& report, const Grant& grant) {
  WorkerTable::Session* const session = workers_->Find(call->session);
  const JobLedger* const ledger = board_->LedgerOf(grant.work.job);
  if (ledger == nullptr) {
    Answer(call, report.lease(), v1::ReportAnswer::NOT_NOW, "its job is being taken up");
    return;
  }
  const PlannedTask& task = ledger->plan().tasks[grant.work.task];
  Expectation expected = SourceOf(*session, grant.device, report.result());
  expected.protocol = task.protocol;
  expected.least_seconds = LeastSeconds(task.workload, task.target);
  absl::Status possible = CheckResult(report.result(), expected);
  for (const v1::MeasureResult& rival : report.rivals()) possible.Update(CheckResult(rival, expected));
  const Held held{call, report, grant, session, *ledger, expected};
  if (!possible.ok()) {
    TakeImpossible(held, possible);
  } else if (IsInfrastructureFailure(report.result().status())) {
    TakeLoss(held);
  } else if (grant.work.is_round()) {
    TakeRound(held);
  } else if (builds_->IsBuildDoubted(grant.work, report.result().status())) {
    TakeDoubtedBuild(held);
  } else if (IsDoubted(held)) {
    TakeDoubted(held);
  } else {
    TakeResult(held);
  }
}

void Reports::TakeImpossible(const Held& held, const absl::Status& why) {
  const v1::LeaseId lease = held.report.lease();
  const std::string reason(why.message()), words = absl::StrCat("its result was refused: ", reason);
  CountRefusal(held.session, absl::StrCat("a result of ", lease.trial(), ": ", reason));
  workers_->JudgeLoss(held.session, held.device(), words, time_->Seconds());
  const QueuedWork& work = held.grant.work;
  if (work.is_round() && !workers_->HasElsewhere(held.task().target, held.task().protocol,
                                                 {held.session->worker}, time_->Seconds())) {
    const std::string job = work.job, round = work.name;
    queue_->Finish(round, work.attempt);
    board_->GiveUpRound(job, round, words);  // the single timings stand
  } else {
    losses_->ReturnElsewhere(held.grant, {held.session->worker, held.device(),
                                          absl::StrCat("worker ", held.session->worker, ": ", words)});
  }
  Answer(held.call, lease, v1::ReportAnswer::REFUSED, reason);
}

void Reports::TakeLoss(const Held& held) {
  const v1::MeasureResult& result = held.report.result();
  const std::string error = ToUtf8(result.error());
  workers_->JudgeLoss(held.session, held.device(), error, time_->Seconds());
  ++counters_.trials[result.status()];
  if (log_) log_(ResultEvent("trial.lost", held.report.lease(), held.session->worker, held.device(), result));
  FailedTry failed{held.session->worker, held.device(),
                   absl::StrCat("worker ", held.session->worker, ": ", error)};
  if (result.status() == v1::MEASURE_STATUS_WORKER_UNFIT) {
    losses_->ReturnElsewhere(held.grant, std::move(failed));
  } else {
    losses_->Lose(held.grant, result.status(), std::move(failed));
  }
  Answer(held.call, held.report.lease(), v1::ReportAnswer::KEPT);
}

bool Reports::IsDoubted(const Held& held) const {
  if (held.report.result().status() == v1::MEASURE_STATUS_OK) return false;
  const std::vector<FailedTry>& tries = held.grant.work.failed_tries;
  const bool was_doubted =
      std::ranges::any_of(tries, [](const FailedTry& failed) { return failed.is_doubted; });
  if (was_doubted || workers_->IsBelieved(*held.session, held.device(), LineOf(held.grant.work)))
    return false;
  return workers_->HasElsewhere(held.task().target, held.task().protocol, {held.session->worker},
                                time_->Seconds());
}

void Reports::TakeDoubted(const Held& held) {
  const v1::MeasureResult& result = held.report.result();
  workers_->Judge(held.session, held.device(),
                  {LineOf(held.grant.work), held.task().target, held.task().protocol}, result,
                  time_->Seconds());
  losses_->ReturnElsewhere(held.grant,
                           {held.session->worker, held.device(), WordsOf(result), /*is_doubted=*/true});
  Answer(held.call, held.report.lease(), v1::ReportAnswer::IGNORED, "it is tried on another worker first");
}

void Reports::TakeDoubtedBuild(const Held& held) {
  builds_->Forget(AssignmentOf(held.grant, held.ledger));
  queue_->DoubtBuild(held.grant.work.name, held.grant.work.attempt);
  losses_->Return(held.grant);
  Answer(held.call, held.report.lease(), v1::ReportAnswer::IGNORED, "it is built and tried again first");
}

Reports::PendingPtr Reports::PendingOf(const Held& held) const {
  auto pending = std::make_shared<Pending>();
  pending->call = held.call;
  pending->lease = held.report.lease();
  pending->finished.trial = held.grant.work.name;
  pending->finished.attempt = held.grant.work.attempt;
  pending->worker = held.session->worker;
  pending->device = held.device();
  pending->line = LineOf(held.grant.work);
  pending->code = held.task().target;
  pending->protocol = held.task().protocol;
  pending->work = held.grant.work;
  return pending;
}

void Reports::TakeRound(const Held& held) {
  const std::vector<v1::MeasureResult> results =
      ResultsOf(held.report, held.expected, AssignmentOf(held.grant, held.ledger));
  const PendingPtr pending = PendingOf(held);
  pending->finished.result = results[0];
  const std::string job = held.ledger.id();
  queue_->BeginCommit(pending->finished.trial, pending->finished.attempt);
  being_written_.insert(pending->finished.trial);
  board_->FinishRound(job, pending->finished.trial, results, [this, pending](const absl::Status& status) {
    being_written_.erase(pending->finished.trial);
    if (!status.ok()) {
      HoldAgain(pending->call, pending->lease, status);
      return;
    }
    queue_->Finish(pending->finished.trial, pending->finished.attempt, RunSecondsOf(pending->finished));
    const FinishedTrial& round = pending->finished;
    if (log_)
      log_(ResultEvent("round.finished", pending->lease, pending->worker, pending->device, round.result));
    Judge(*pending);
    Answer(pending->call, pending->lease, v1::ReportAnswer::KEPT);
  });
}

void Reports::TakeResult(const Held& held) {
  const PendingPtr pending = PendingOf(held);
  pending->finished.result = ResultsOf(held.report, held.expected, AssignmentOf(held.grant, held.ledger))[0];
  queue_->BeginCommit(pending->finished.trial, pending->finished.attempt);
  Keep(pending, [store = store_, pending] { return KeepResult(store, &pending->finished); });
}

void Reports::TakeLate(const CallPtr& call, const v1::Report& report) {
  const v1::LeaseId& lease = report.lease();
  const absl::StatusOr<TrialId> id = ParseTrialName(lease.trial());
  if (!board_->log_gone().ok()) {
    Answer(call, lease, v1::ReportAnswer::NOT_NOW, std::string(board_->log_gone().message()));
    return;
  }
  if (id.ok() && board_->admission().IsOnItsWay(id->job)) {
    Answer(call, lease, v1::ReportAnswer::NOT_NOW, "its job is being taken up");
    return;
  }
  if (!id.ok() || board_->IsRunning(id->job) || IsInfrastructureFailure(report.result().status())) {
    Answer(call, lease, v1::ReportAnswer::IGNORED, "the lease had ended");
    return;
  }
  const Expectation source = SourceOf(*workers_->Find(call->session), "", report.result());
  auto pending = std::make_shared<Pending>();
  pending->call = call;
  pending->lease = lease;
  pending->finished = {lease.trial(), lease.attempt(), Sanitized(report.result(), source)};
  being_written_.insert(lease.trial());
  board_->admission().Change(
      id->job,
      [store = store_, pending, source] { return KeepLateResult(store, &pending->finished, source); },
      [this, pending](const absl::Status& status) { OnWritten(pending, status); });
}

void Reports::Keep(const PendingPtr& pending, LogWrite write) {
  being_written_.insert(pending->finished.trial);
  write_(std::move(write), [this, pending](const absl::Status& status) { OnWritten(pending, status); });
}

void Reports::OnWritten(const PendingPtr& pending, const absl::Status& status) {
  const FinishedTrial& finished = pending->finished;
  being_written_.erase(finished.trial);
  const bool has_ended =
      !IsLogGone(status) && (absl::IsFailedPrecondition(status) || absl::IsNotFound(status));
  if (status.ok()) {
    OnKept(*pending);
  } else if (has_ended) {
    queue_->Finish(finished.trial, finished.attempt);
    Answer(pending->call, pending->lease, v1::ReportAnswer::IGNORED, "the lease had ended");
  } else if (absl::IsInvalidArgument(status)) {
    OnUnfit(*pending, status);
  } else {
    HoldAgain(pending->call, pending->lease, status);
  }
}

void Reports::OnKept(const Pending& pending) {
  const FinishedTrial& finished = pending.finished;
  troubles_.erase(finished.trial);
  ++counters_.trials[finished.result.status()];
  if (log_)
    log_(ResultEvent("trial.finished", pending.lease, pending.worker, pending.device, finished.result));
  Judge(pending);
  const absl::StatusOr<TrialId> id = ParseTrialName(finished.trial);
  // Otherwise its job has ended.
  if (queue_->Finish(finished.trial, finished.attempt, RunSecondsOf(finished)) && id.ok())
    board_->OnFinished(*id, finished.result);
  Answer(pending.call, pending.lease, v1::ReportAnswer::KEPT);
}

// The log does not take such a result.
void Reports::OnUnfit(const Pending& pending, const absl::Status& why) {
  const FinishedTrial& finished = pending.finished;
  queue_->AbortCommit(finished.trial, finished.attempt, time_->Seconds());
  if (WorkerTable::Session* const session = workers_->Find(pending.call->session); session != nullptr)
    CountRefusal(session, absl::StrCat("a result of ", finished.trial, ": ", why.message()));
  if (const Grant* const grant = queue_->Find(finished.trial, finished.attempt); grant != nullptr) {
    losses_->ReturnElsewhere(
        *grant, {pending.worker, pending.device,
                 absl::StrCat("worker ", pending.worker, ": its result was refused: ", why.message())});
  }
  Answer(pending.call, pending.lease, v1::ReportAnswer::REFUSED, std::string(why.message()));
}

void Reports::Judge(const Pending& pending) {
  const double now = time_->Seconds();
  const v1::MeasureResult& result = pending.finished.result;
  WorkerTable::Session* const session = workers_->Find(pending.call->session);
  if (session != nullptr && !pending.device.empty())
    workers_->Judge(session, pending.device, {pending.line, pending.code, pending.protocol}, result, now);
  const bool failed_too = result.status() != v1::MEASURE_STATUS_OK;
  builds_->OnMeasured(pending.work, result.status());
  for (const FailedTry& earlier : pending.work.failed_tries) {
    if (!earlier.is_doubted) continue;
    workers_->JudgeAgain(earlier.worker, earlier.device, failed_too,
                         absl::StrCat("what fails here succeeds on worker ", pending.worker, ": trial ",
                                      pending.finished.trial, ": ", earlier.what),
                         now);
  }
}

void Reports::Answer(const CallPtr& call, const v1::LeaseId& lease, v1::ReportAnswer::Kind kind,
                     const std::string& reason) {
  v1::ReportAnswer& answer = *call->response.add_answers();
  *answer.mutable_lease() = lease;
  answer.set_kind(kind);
  answer.set_reason(ToUtf8(reason));
  if (kind == v1::ReportAnswer::IGNORED || kind == v1::ReportAnswer::REFUSED)
    *call->response.add_ignored() = lease;
  if (kind == v1::ReportAnswer::NOT_NOW) call->not_now = reason;
  Close(call);
}

void Reports::HoldAgain(const CallPtr& call, const v1::LeaseId& lease, const absl::Status& why) {
  queue_->AbortCommit(lease.trial(), lease.attempt(), time_->Seconds());
  std::erase_if(troubles_, [this](const auto& trouble) {
    return !board_->IsRunning(trouble.first.substr(0, trouble.first.find('/')));
  });
  troubles_[lease.trial()] = std::string(why.message());
  Answer(call, lease, v1::ReportAnswer::NOT_NOW, std::string(why.message()));
}

std::string Reports::TroubleOf(const std::string& job) const {
  const auto first = troubles_.lower_bound(job + "/");
  return first != troubles_.end() && absl::StartsWith(first->first, job + "/") ? first->second : "";
}

void Reports::Close(const CallPtr& call) {
  if (--call->open > 0) return;
  if (!call->not_now.empty() && !call->knows_answers) {
    // An older worker forgets a report that is answered at all, and tries again when the server is not
    // available.
    call->reply(absl::UnavailableError(call->not_now));
    return;
  }
  WorkerTable::Session* const session = workers_->Find(call->session);
  if (session != nullptr) *call->response.mutable_instructions() = workers_->TakeInstructions(session);
  call->reply(std::move(call->response));
}

}  // namespace mycc
