#include "server/job_endings.h"

#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace mycc {
namespace {

// Of each kind: the next jobs start from the newest one, the others are for whoever looks back.
constexpr int kModelsKept = 3;

std::string WordsOf(StopReason reason) {
  switch (reason) {
    case StopReason::kTrials: return "all trials are measured";
    case StopReason::kTime: return "the time budget is spent";
    case StopReason::kSmallGain: return "another round promises too little";
    case StopReason::kExhausted: return "the spaces hold nothing new";
  }
  return "";
}

// Jobs that have not ended may score with theirs once more, after a restart.
absl::StatusOr<std::set<std::string>> ModelsInUse(const JobStore& store) {
  constexpr JobState kUnfinished[] = {JobState::kRunning};
  MYCC_ASSIGN_OR_RETURN(const std::vector<Job> jobs, store.ListJobs(kUnfinished));
  std::set<std::string> ids;
  for (const Job& job : jobs) {
    v1::StoredJob stored;
    if (stored.ParseFromString(job.spec)) ids.insert(stored.models().begin(), stored.models().end());
  }
  return ids;
}

absl::Status KeepModels(const JobStore& store, const ModelBytes& models, const std::string& info,
                        ModelStore* to) {
  for (const auto& [kind, bytes] : models) MYCC_RETURN_IF_ERROR(to->Save(kind, info, bytes).status());
  MYCC_ASSIGN_OR_RETURN(const std::set<std::string> in_use, ModelsInUse(store));
  return to->KeepNewest(kModelsKept, in_use);
}

}  // namespace

JobEndings::JobEndings(JobEndingOptions options, TuningLog* log, JobStore* store, ModelStore* models,
                       LeaseQueue* queue, const TimeSource* time, Executors executors, AdvanceJob advance,
                       OnEnded on_ended)
    : options_(options),
      log_(log),
      store_(store),
      models_(models),
      queue_(queue),
      time_(time),
      executors_(std::move(executors)),
      advance_(std::move(advance)),
      on_ended_(std::move(on_ended)) {}

void JobEndings::End(RunningJob* job, JobState state, const std::string& message) {
  if (job->ending) return;
  job->ending = JobEnding{state, message, time_->Seconds() + options_.ending_seconds};
  queue_->DropWaiting(job->id());
  job->Touch();
}

void JobEndings::EndAsSearched(RunningJob* job, StopReason reason) {
  End(job, JobState::kDone, WordsOf(reason));
}

void JobEndings::Advance(RunningJob* job) {
  if (job->ending->in_log) {
    if (job->models_saved || job->search == nullptr) return on_ended_(job);
    return SaveModels(job);
  }
  const bool settled = queue_->leased_of(job->id()) == 0 || time_->Seconds() >= job->ending->by;
  if (job->finals == nullptr && settled) BeginFinals(job);
  if (job->finals == nullptr || job->finals->is_open()) return;
  if (job->models_saved || job->search == nullptr) {
    Finalize(job);
  } else {
    SaveModels(job);
  }
}

void JobEndings::BeginFinals(RunningJob* job) {
  queue_->DropWaiting(job->id());  // trials that came back meanwhile
  job->finals = std::make_unique<JobFinals>(log_, job->active.get());
  if (job->ending->state != JobState::kDone) return;
  for (QueuedTrial& round : job->finals->Plan()) queue_->Add(std::move(round));
  job->finals_by = time_->Seconds() + options_.finals_seconds;
  job->Touch();
}

absl::Status JobEndings::FinishRound(RunningJob* job, const std::string& round,
                                     const std::vector<v1::MeasureResult>& results) {
  if (job->finals == nullptr) return absl::OkStatus();
  MYCC_RETURN_IF_ERROR(job->finals->Finish(round, results));
  job->finals_by = time_->Seconds() + options_.finals_seconds;
  job->Touch();
  advance_(job);
  return absl::OkStatus();
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
  job->searching = true;
  executors_.search([models, search = job->search.get()] { *models = search->Models(); },
                    [this, job, models] {
                      job->searching = false;
                      job->models_saved = true;
                      // The next job starts from less when this fails, and that is all.
                      if (models->ok())
                        (void)KeepModels(*store_, **models, absl::StrCat("after job ", job->id()), models_);
                      advance_(job);
                    });
}

void JobEndings::Finalize(RunningJob* job) {
  const std::string id = job->id();
  for (uint32_t task = 0; task < job->active->plan().tasks.size(); ++task) {
    // For people; the job's state is what counts.
    (void)store_->FinishTask(id, task, job->active->TaskOutcome(task));
  }
  std::string message = job->ending->message;
  if (const std::string failures = job->finals->Failures(); !failures.empty())
    absl::StrAppend(&message, "; ", failures);
  if (!store_->SetJobState(id, job->ending->state, message).ok()) return;  // Tick tries again
  on_ended_(job);
}

}  // namespace mycc
