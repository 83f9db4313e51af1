// A report passes three steps: its order is looked up, what was built is checked and kept, and the order
// ends; each step may answer it.
#include "server/build_reports.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/cuda/portable.h"
#include "codegen/schedule/trace_names.h"
#include "codegen/workload/parse.h"
#include "proto/names.h"
#include "proto/reproduction.h"
#include "proto/utf8.h"
#include "server/assignment.h"
#include "server/executors.h"
#include "server/result_keeping.h"

namespace mycc {
namespace {

constexpr char kBuildDevice[] = "build";  // in place of a device, in the record of a failed build
constexpr size_t kMostErrorBytes = 64 << 10;
constexpr double kMostBuildSeconds = 86400;

// The builder's figure, brought into the range of possible ones; a NaN is 0.
double BuildSecondsOf(const v1::BuildReport& report) {
  return std::min(std::max(0.0, report.build_seconds()), kMostBuildSeconds);
}

// A status with which a build can end.
bool IsBuildFailure(v1::MeasureStatus status) {
  return status == v1::MEASURE_STATUS_BUILD_ERROR || status == v1::MEASURE_STATUS_BUILD_TIMEOUT ||
         status == v1::MEASURE_STATUS_OUT_OF_MEMORY;
}

// Checks what was built, and keeps it. InvalidArgument: it is not what was ordered.
absl::StatusOr<std::string> CheckAndKeep(const v1::Assignment& ordered, const v1::BuildReport& report,
                                         ArtifactStore* store) {
  MYCC_ASSIGN_OR_RETURN(const Workload workload, ParseWorkload(ordered.workload(), "the order"));
  MYCC_ASSIGN_OR_RETURN(const Target target, ParseTarget(ordered.target()));
  MYCC_ASSIGN_OR_RETURN(const Portable portable, ParsePortable(report.artifact(), workload, target));
  if (portable.code_digest != report.code_digest())
    return absl::InvalidArgumentError("a built kernel: its code digest is not the report's");
  return store->Put(ArtifactStore::CandidateOf(ordered.workload(), ordered.target(), ordered.trace()),
                    report.artifact());
}

}  // namespace

void BuildReports::Report(const v1::ReportBuildsRequest& request, Reply<v1::ReportBuildsResponse> reply) {
  const WorkerTable::Session* const session = parts_.workers->Find(request.session());
  auto call = std::make_shared<Call>();
  call->session = session->id;
  call->worker = session->worker;
  call->reply = std::move(reply);
  call->open = 1 + request.reports_size();  // one is this function's, so that the last is not over too early
  for (const v1::BuildReport& report : request.reports()) Take(call, report);
  Close(call);
}

void BuildReports::Take(const CallPtr& call, const v1::BuildReport& report) {
  const v1::LeaseId& lease = report.lease();
  WorkerTable::Session* const session = parts_.workers->Find(call->session);
  if (!session->builder || !parts_.tickets->IsGenuine(lease)) {
    parts_.count_refusal(session, absl::StrCat("a report without the ticket of ", lease.trial()));
    Answer(call, lease, v1::ReportAnswer::REFUSED, "its ticket is not the lease's");
    return;
  }
  const Grant* const order = parts_.queue->Find(lease);
  if (order != nullptr && order->state != LeaseState::kHeld) {
    Answer(call, lease, v1::ReportAnswer::NOT_NOW, "it was reported before and is being kept");
  } else if (order != nullptr) {
    TakeStanding(call, report, *order);
  } else if (const std::optional<Grant> again = OrderAgain(*call, lease)) {
    TakeStanding(call, report, *again);
  } else {
    const absl::StatusOr<TrialId> id = ParseTrialName(BuildQueue::TrialOf(lease.trial()));
    const bool comes = id.ok() && parts_.board->admission().IsOnItsWay(id->job);
    Answer(call, lease, comes ? v1::ReportAnswer::NOT_NOW : v1::ReportAnswer::IGNORED,
           comes ? "its job is being taken up" : "the lease had ended");
  }
}

std::optional<Grant> BuildReports::OrderAgain(const Call& call, const v1::LeaseId& lease) {
  const std::string trial = BuildQueue::TrialOf(lease.trial());
  const absl::StatusOr<TrialId> id = ParseTrialName(trial);
  const JobLedger* const ledger = id.ok() ? parts_.board->Leasable(id->job) : nullptr;
  if (ledger == nullptr || id->task >= ledger->plan().tasks.size()) return std::nullopt;
  return parts_.queue->LeaseAgain(*parts_.workers->Find(call.session), id->job,
                                  ledger->plan().tasks[id->task].key.target, trial, parts_.time->Seconds());
}

void BuildReports::TakeStanding(const CallPtr& call, const v1::BuildReport& report, const Grant& order) {
  const JobLedger* const ledger = parts_.board->Leasable(order.work.job);
  if (ledger == nullptr) {
    Answer(call, report.lease(), v1::ReportAnswer::IGNORED, "its job has ended");
    parts_.queue->Drop(order);
    return;
  }
  auto pending = std::make_shared<Pending>(Pending{call, report, order, {}});
  const PlannedTask& task = ledger->plan().tasks[order.work.task];
  pending->assignment.set_workload(task.key.workload);
  pending->assignment.set_target(task.key.target);
  pending->assignment.set_trace(StoredTrace(std::get<TrialWork>(order.work.what).trace));
  pending->assignment.set_protocol(task.protocol);
  if (report.error().empty() && report.status() != v1::MEASURE_STATUS_WORKER_UNFIT) {
    TakeArtifact(pending);
  } else if (IsBuildFailure(report.status())) {
    TakeFailure(pending);
  } else {
    TakeUnfit(*pending);
  }
}

void BuildReports::TakeArtifact(const PendingPtr& pending) {
  parts_.queue->BeginEnd(pending->order);
  ReadLog(
      parts_.read,
      [pending, store = parts_.store](TuningLog*) {
        return CheckAndKeep(pending->assignment, pending->report, store);
      },
      [this, pending](const absl::StatusOr<std::string>& digest) { OnKept(*pending, digest); });
}

void BuildReports::OnKept(const Pending& pending, const absl::StatusOr<std::string>& digest) {
  const v1::LeaseId& lease = pending.report.lease();
  WorkerTable::Session* const session = parts_.workers->Find(pending.call->session);
  const std::string words(digest.status().message());
  if (digest.ok()) {
    Judge(pending, v1::MEASURE_STATUS_OK);
    parts_.queue->Built(pending.order, pending.call->worker);
    Answer(pending.call, lease, v1::ReportAnswer::KEPT);
  } else if (absl::IsInvalidArgument(digest.status())) {
    if (session != nullptr) {
      parts_.count_refusal(session, absl::StrCat("what it built for ", lease.trial(), ": ", words));
      session->builder->builds.OnLoss(words, parts_.time->Seconds());
    }
    parts_.queue->ReturnElsewhere(pending.order, /*lost=*/false, {pending.call->worker, kBuildDevice, words},
                                  parts_.time->Seconds());
    Answer(pending.call, lease, v1::ReportAnswer::REFUSED, words);
  } else {
    // The server cannot keep it: who measures the trial builds it.
    parts_.queue->GiveUp(pending.order);
    Answer(pending.call, lease, v1::ReportAnswer::IGNORED, absl::StrCat("it cannot be kept: ", words));
  }
}

void BuildReports::TakeUnfit(const Pending& pending) {
  const v1::BuildReport& report = pending.report;
  const std::string words = absl::StrCat("build worker ", pending.call->worker, ": ", ToUtf8(report.error()));
  const double now = parts_.time->Seconds();
  parts_.workers->Find(pending.call->session)->builder->builds.OnLoss(words, now);
  parts_.queue->ReturnElsewhere(pending.order, report.status() == v1::MEASURE_STATUS_WORKER_LOST,
                                {pending.call->worker, kBuildDevice, words}, now);
  Answer(pending.call, report.lease(), v1::ReportAnswer::KEPT);
}

void BuildReports::Judge(const Pending& pending, v1::MeasureStatus status) {
  WorkerTable::Builder* const builder = parts_.workers->FindBuilder(pending.call->worker);
  const double now = parts_.time->Seconds();
  const std::string& target = pending.order.work.target;
  if (builder != nullptr) {
    v1::MeasureResult outcome;
    outcome.set_status(status);
    outcome.set_error(pending.report.error());
    ++builder->finished;
    builder->builds.OnResult(outcome, parts_.workers->HasBuilder(target, {pending.call->worker}, now), now);
  }
  for (const FailedTry& failed : pending.order.work.failed_tries) {
    WorkerTable::Builder* const doubted = parts_.workers->FindBuilder(failed.worker);
    if (!failed.is_doubted || doubted == nullptr) continue;
    if (status == v1::MEASURE_STATUS_OK) {
      doubted->builds.OnRefuted(absl::StrCat("what it could not build, ", pending.call->worker,
                                             " has built; the last: ", failed.what),
                                now);
    } else {
      doubted->builds.OnConfirmed();
    }
  }
}

bool BuildReports::IsDoubted(const Pending& pending) {
  const std::vector<FailedTry>& tries = pending.order.work.failed_tries;
  const bool was_doubted =
      std::ranges::any_of(tries, [](const FailedTry& failed) { return failed.is_doubted; });
  return !was_doubted && !parts_.workers->Find(pending.call->session)->builder->builds.is_believed();
}

void BuildReports::TakeFailure(const PendingPtr& pending) {
  const double now = parts_.time->Seconds();
  const bool is_doubted = IsDoubted(*pending);
  Judge(*pending, pending->report.status());
  if (!is_doubted) {
    parts_.queue->BeginEnd(pending->order);
    EndTrial(pending);
    return;
  }
  const std::string words =
      absl::StrCat(StatusName(pending->report.status()), ": ", ToUtf8(pending->report.error()));
  if (parts_.workers->HasBuilder(pending->order.work.target, {pending->call->worker}, now)) {
    parts_.queue->ReturnElsewhere(pending->order, /*lost=*/false,
                                  {pending->call->worker, kBuildDevice, words, /*is_doubted=*/true}, now);
  } else {
    parts_.queue->GiveUp(pending->order);  // who measures tries to build it
  }
  Answer(pending->call, pending->report.lease(), v1::ReportAnswer::IGNORED,
         "it is tried on another worker first");
}

v1::MeasureResult BuildReports::ResultOf(const Pending& pending) const {
  const v1::BuildReport& report = pending.report;
  v1::MeasureResult result;
  result.set_status(report.status());
  result.set_error(ToUtf8(report.error().substr(0, kMostErrorBytes)));
  result.mutable_timing()->set_protocol(pending.assignment.protocol());
  result.mutable_timing()->set_build_seconds(BuildSecondsOf(report));
  result.set_code_digest(report.code_digest());
  if (report.has_resources()) *result.mutable_resources() = report.resources();
  result.mutable_device()->set_worker(ToUtf8(pending.call->worker));
  result.mutable_device()->set_device(kBuildDevice);
  const WorkerTable::Session* const session = parts_.workers->Find(pending.call->session);
  if (session != nullptr) *result.mutable_toolchain() = session->toolchain;
  result.set_reproduction(ReproductionOf(pending.assignment));
  result.set_finished_unix_micros(parts_.time->UnixMicros());
  result.set_started_unix_micros(result.finished_unix_micros() -
                                 static_cast<int64_t>(1e6 * BuildSecondsOf(report)));
  return result;
}

void BuildReports::EndTrial(const PendingPtr& pending) {
  const QueuedWork& order = pending->order.work;
  const std::string trial = BuildQueue::TrialOf(order.name);
  const std::optional<Grant> grant = parts_.trials->LeaseUnbuilt(
      {.holder = pending->call->session, .device = ""}, order.job, order.target, trial);
  if (!grant) {
    parts_.queue->Drop(pending->order);
    Answer(pending->call, pending->report.lease(), v1::ReportAnswer::IGNORED, "its trial does not wait");
    return;
  }
  // With the seed, for the line that reproduces it.
  if (const JobLedger* const ledger = parts_.board->Leasable(order.job))
    pending->assignment = AssignmentOf(*grant, *ledger);
  auto finished = std::make_shared<FinishedTrial>();
  finished->trial = trial;
  finished->attempt = grant->work.attempt;
  finished->result = ResultOf(*pending);
  parts_.write(
      [log = parts_.log, finished, worker = pending->call->worker]() -> absl::Status {
        MYCC_ASSIGN_OR_RETURN(const std::vector<uint32_t> attempts,
                              log->LeaseTrials({finished->trial}, worker));
        if (attempts[0] != finished->attempt) {
          return absl::InternalError(absl::StrCat("trial ", finished->trial, " was leased as attempt ",
                                                  attempts[0], "; expected attempt ", finished->attempt));
        }
        return KeepResult(log, finished.get());
      },
      [this, pending, finished](const absl::Status& status) {
        const v1::LeaseId& lease = pending->report.lease();
        if (status.ok()) {
          parts_.queue->Drop(pending->order);
          parts_.trials->Finish(finished->trial, finished->attempt);
          const absl::StatusOr<TrialId> id = ParseTrialName(finished->trial);
          if (id.ok()) parts_.board->OnFinished(*id, finished->result);
          Answer(pending->call, lease, v1::ReportAnswer::KEPT);
        } else {
          parts_.trials->TakeBack(finished->trial, finished->attempt);
          parts_.queue->AbortEnd(pending->order, parts_.time->Seconds());
          Answer(pending->call, lease, v1::ReportAnswer::NOT_NOW, std::string(status.message()));
        }
      });
}

void BuildReports::Answer(const CallPtr& call, const v1::LeaseId& lease, v1::ReportAnswer::Kind kind,
                          const std::string& reason) {
  v1::ReportAnswer& answer = *call->response.add_answers();
  *answer.mutable_lease() = lease;
  answer.set_kind(kind);
  answer.set_reason(reason);
  Close(call);
}

void BuildReports::Close(const CallPtr& call) {
  if (--call->open > 0) return;
  WorkerTable::Session* const session = parts_.workers->Find(call->session);
  if (session == nullptr) {
    call->reply(UnknownSession(call->session));
    return;
  }
  *call->response.mutable_instructions() = parts_.workers->TakeInstructions(session);
  call->reply(std::move(call->response));
}

}  // namespace mycc
