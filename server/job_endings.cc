#include "server/job_endings.h"

#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "server/job_listing.h"
#include "server/scheduler_terms.h"

namespace mycc {
namespace {

// The models that are kept of each kind: the next jobs start from the newest one, people may look at the
// others.
constexpr int kModelsKept = 3;
constexpr double kEndRetrySeconds = 1;

std::string WordsOf(StopReason reason, const v1::StoredJob& job) {
  switch (reason) {
    case StopReason::kTrials: return "all trials are measured";
    case StopReason::kTime: return "the time budget is spent";
    case StopReason::kExhausted: return "the spaces hold nothing new";
    case StopReason::kGain:
      return absl::StrFormat("%s would gain less than %g %%",
                             HasTimeLimit(job) ? "the next minute" : "as many trials again",
                             100 * job.spec().min_gain());
  }
  return "";
}

// Jobs that run may score with theirs once more, after a restart, and cancelled ones when they go on.
absl::StatusOr<std::set<std::string>> ModelsInUse(const JobStore& store) {
  constexpr JobState kGoOn[] = {JobState::kRunning, JobState::kCancelled};
  MYCC_ASSIGN_OR_RETURN(const std::vector<Job> jobs, store.ListJobs(kGoOn));
  std::set<std::string> ids;
  for (const Job& job : jobs) {
    v1::StoredJob stored;
    if (stored.ParseFromString(job.spec)) ids.insert(stored.models().begin(), stored.models().end());
  }
  return ids;
}

absl::Status SaveAll(const JobStore& store, const ModelBytes& models, const std::string& info,
                     ModelStore* to) {
  for (const auto& [kind, bytes] : models) MYCC_RETURN_IF_ERROR(to->Save(kind, info, bytes).status());
  MYCC_ASSIGN_OR_RETURN(const std::set<std::string> in_use, ModelsInUse(store));
  return to->KeepNewest(kModelsKept, in_use);
}

}  // namespace

JobEndings::JobEndings(JobEndingOptions options, TuningLog* log, JobStore* store, ModelStore* models,
                       LeaseQueue* queue, const TimeSource* time, Executors executors, AdvanceJob advance,
                       ShowJob show, OnEnded on_ended)
    : options_(options),
      log_(log),
      store_(store),
      models_(models),
      queue_(queue),
      time_(time),
      executors_(std::move(executors)),
      advance_(std::move(advance)),
      show_(std::move(show)),
      on_ended_(std::move(on_ended)) {}

void JobEndings::End(RunningJob* job, JobState state, const std::string& message) {
  if (job->ending) return;
  job->ending = JobEnding{state, message, time_->Seconds() + options_.ending_seconds};
  queue_->DropWaiting(job->id());
  job->Touch();
}

void JobEndings::EndAsSearched(RunningJob* job, StopReason reason) {
  End(job, JobState::kDone, WordsOf(reason, job->ledger->stored()));
}

void JobEndings::Advance(RunningJob* job) {
  if (job->ending->is_unwritable) return;
  if (job->ending->in_log) {
    if (job->models_saved || job->search == nullptr) return on_ended_(job);
    return SaveModels(job);
  }
  const double now = time_->Seconds();
  if (job->finals == nullptr) {
    if (queue_->leased_of(job->id()) == 0 || now >= job->ending->by) PlanRounds(job);
  } else if (job->finals->is_open()) {
    return;
  } else if (!job->models_saved && job->search != nullptr) {
    SaveModels(job);
  } else if (now >= job->retry_at) {
    Finalize(job);
  }
}

void JobEndings::PlanRounds(RunningJob* job) {
  queue_->DropWaiting(job->id());  // trials that came back meanwhile
  if (job->ending->state != JobState::kDone) {
    BeginFinals(job, {});
    return advance_(job);
  }
  ++job->under_way;
  ReadLog(
      executors_.read,
      [question = FinalsQuestionOf(*job->ledger)](TuningLog* log) { return PlanFinals(question, *log); },
      [this, job](const FinalsPlan& plan) {
        --job->under_way;
        BeginFinals(job, plan);
        advance_(job);
      });
  // The search learns nothing from the rounds, so that its models are made beside them.
  if (job->search != nullptr) SaveModels(job);
}

void JobEndings::BeginFinals(RunningJob* job, const FinalsPlan& plan) {
  if (job->ending->in_log || job->ending->is_unwritable) return;  // meanwhile
  job->finals = std::make_unique<JobFinals>(job->ledger.get(), plan);
  for (QueuedWork& round : QueuedRounds(*job->ledger, plan)) queue_->Add(std::move(round));
  job->finals_by = time_->Seconds() + options_.finals_seconds;
  job->Touch();
}

void JobEndings::FinishRound(RunningJob* job, const std::string& round,
                             const std::vector<v1::MeasureResult>& results, const LogWriteDone& done) {
  if (job->finals == nullptr || !job->finals->is_open(round)) return done(absl::OkStatus());
  std::vector<v1::Record> records = job->finals->Records(round, results, time_->UnixMicros());
  if (records.empty()) {
    job->Touch();
    done(absl::OkStatus());
    return advance_(job);
  }
  ++job->under_way;
  executors_.write([log = log_, records] { return log->Append(records).status(); },
                   [this, job, round, records, done](const absl::Status& status) {
                     --job->under_way;
                     OnRoundWritten(job, round, records, status, done);
                     advance_(job);
                   });
}

void JobEndings::OnRoundWritten(RunningJob* job, const std::string& round,
                                const std::vector<v1::Record>& records, const absl::Status& status,
                                const LogWriteDone& done) {
  const bool is_refused = absl::IsInvalidArgument(status);
  if (is_refused) job->finals->GiveUp(round, std::string(status.message()));
  if (status.ok()) {
    job->finals->Finish(round, records);
    job->finals_by = time_->Seconds() + options_.finals_seconds;
  }
  job->Touch();
  done(is_refused ? absl::OkStatus() : status);
}

void JobEndings::GiveUpRound(RunningJob* job, const std::string& round, const std::string& why) {
  if (job->finals == nullptr) return;
  job->finals->GiveUp(round, why);
  job->Touch();
  advance_(job);
}

void JobEndings::WatchFinals(RunningJob* job) {
  const double now = time_->Seconds();
  if (queue_->leased_of(job->id()) > 0) job->finals_by = now + options_.finals_seconds;
  if (now < job->finals_by) return;
  job->finals->GiveUpAll(absl::StrCat("no worker took it in ", options_.finals_seconds, " s"));
  job->Touch();
}

void JobEndings::SaveModels(RunningJob* job) {
  auto models = std::make_shared<absl::StatusOr<ModelBytes>>(absl::UnknownError(""));
  ++job->under_way;
  executors_.search([models, search = job->search.get()] { *models = search->Models(); },
                    [this, job, models] {
                      --job->under_way;
                      job->models_saved = true;
                      if (models->ok()) KeepModels(job->id(), **std::move(models));
                      advance_(job);
                    });
}

void JobEndings::KeepModels(const std::string& job, ModelBytes models) {
  // The next job starts from less when this fails, and that is all.
  executors_.write([store = store_, to = models_, models = std::move(models),
                    info = absl::StrCat("after job ", job)] { return SaveAll(*store, models, info, to); },
                   [](const absl::Status&) {});
}

void JobEndings::Finalize(RunningJob* job) {
  const JobState state = job->ending->state;
  std::string message = job->ending->message;
  for (const std::string& more : {job->ledger->stored().begun_anew(), job->finals->Failures()})
    if (!more.empty()) absl::StrAppend(&message, "; ", more);
  std::vector<std::string> outcomes;
  for (uint32_t task = 0; task < job->ledger->plan().tasks.size(); ++task)
    outcomes.push_back(job->ledger->TaskOutcome(task));
  ++job->under_way;
  executors_.write(
      [store = store_, id = job->id(), state, message, outcomes = std::move(outcomes),
       summary = SummaryOf(show_(*job), state, message)]() -> absl::Status {
        for (uint32_t task = 0; task < outcomes.size(); ++task)
          MYCC_RETURN_IF_ERROR(store->FinishTask(id, task, outcomes[task]));
        MYCC_RETURN_IF_ERROR(store->SetJobState(id, state, message));
        return store->SetSummary(id, summary);
      },
      [this, job](const absl::Status& status) {
        --job->under_way;
        OnFinalized(job, status);
      });
}

void JobEndings::OnFinalized(RunningJob* job, const absl::Status& status) {
  if (status.ok()) return on_ended_(job);
  if (absl::IsFailedPrecondition(status)) {
    job->ending->in_log = true;  // cancelled before that
    return advance_(job);
  }
  job->retry_at = time_->Seconds() + kEndRetrySeconds;
}

}  // namespace mycc
