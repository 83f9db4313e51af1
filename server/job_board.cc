#include "server/job_board.h"

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "server/history.h"
#include "server/stored_job.h"

namespace mycc {
namespace {

v1::JobState WireState(JobState state) {
  switch (state) {
    case JobState::kRunning:  // in the log, and not here
      return v1::JOB_STATE_WAITING;
    case JobState::kDone: return v1::JOB_STATE_DONE;
    case JobState::kCancelled: return v1::JOB_STATE_CANCELLED;
    case JobState::kFailed: return v1::JOB_STATE_FAILED;
  }
  return v1::JOB_STATE_UNSPECIFIED;
}

std::string WordsOf(StopReason reason) {
  switch (reason) {
    case StopReason::kTrials: return "all trials are measured";
    case StopReason::kTime: return "the time budget is spent";
    case StopReason::kSmallGain: return "another round promises too little";
    case StopReason::kExhausted: return "the spaces hold nothing new";
  }
  return "";
}

std::string RandomSubmission() {
  std::random_device random;
  return absl::StrCat(random(), "-", random(), "-", random(), "-", random());
}

}  // namespace

JobBoard::JobBoard(JobBoardOptions options, TuningLog* log, LeaseQueue* queue, const TimeSource* time,
                   WriteExecutor write, SearchExecutor executor)
    : options_(options),
      log_(log),
      store_(log),
      models_(log),
      queue_(queue),
      time_(time),
      write_(std::move(write)),
      executor_(std::move(executor)) {}

absl::Status JobBoard::Start() {
  if (!options_.resume_all) return absl::OkStatus();
  constexpr JobState kUnfinished[] = {JobState::kRunning};
  MYCC_ASSIGN_OR_RETURN(const std::vector<Job> unfinished, store_.ListJobs(kUnfinished));
  for (const Job& job : unfinished) waiting_.push_back(job.id);
  StartWaiting();
  return absl::OkStatus();
}

absl::StatusOr<v1::JobProgress> JobBoard::Submit(const v1::SubmitJobRequest& request) {
  MYCC_ASSIGN_OR_RETURN(const JobPlan plan, PlanJob(request.spec()));
  const std::string submission = request.submission().empty() ? RandomSubmission() : request.submission();
  // The submission's jobs, oldest first: one that was cancelled or failed gives way to a new one.
  for (int n = 1;; ++n) {
    const std::string id = JobIdOf(submission, n);
    const absl::StatusOr<Job> known = store_.GetJob(id);
    if (absl::IsNotFound(known.status())) {
      MYCC_RETURN_IF_ERROR(Create(id, plan, submission));
      return Progress(id);
    }
    MYCC_RETURN_IF_ERROR(known.status());
    const bool unfinished = known->state == JobState::kRunning;
    if (unfinished && !running_.contains(id) && !IsWaiting(id)) {
      waiting_.push_back(id);
      StartWaiting();
    }
    if (unfinished || (known->state == JobState::kDone && !plan.spec.fresh())) return Progress(id);
  }
}

absl::Status JobBoard::Create(const std::string& id, const JobPlan& plan, const std::string& submission) {
  if (static_cast<int>(waiting_.size()) >= options_.max_waiting) {
    return absl::ResourceExhaustedError(
        absl::StrCat(waiting_.size(), " jobs are waiting; expected fewer, try again later"));
  }
  v1::StoredJob stored;
  *stored.mutable_spec() = plan.spec;
  stored.set_submission(submission);
  stored.set_generation_size(static_cast<uint32_t>(options_.generation_size));
  std::set<std::string> kinds;
  for (const PlannedTask& planned : plan.tasks) kinds.insert(ModelKind(planned.target));
  for (const std::string& kind : kinds) {
    if (const auto model = models_.LoadNewest(kind); model.ok()) stored.add_models(model->id);
  }
  std::vector<Task> tasks;
  bool all_reused = true;
  for (const PlannedTask& planned : plan.tasks) {
    MYCC_ASSIGN_OR_RETURN(const v1::StoredTask recalled, RecallTask(*log_, planned, planned.protocol,
                                                                    plan.spec.trials(), plan.spec.fresh()));
    all_reused &= recalled.reused();
    Task& task = tasks.emplace_back();
    task.key = planned.key;
    task.spec = recalled.SerializeAsString();
  }
  Job job;
  job.id = id;
  job.owner = plan.spec.name();
  job.spec = stored.SerializeAsString();
  MYCC_RETURN_IF_ERROR(store_.CreateJob(job, tasks));
  if (all_reused) return store_.SetJobState(id, JobState::kDone, "the log already held what was asked for");
  waiting_.push_back(id);
  StartWaiting();
  return absl::OkStatus();
}

bool JobBoard::IsWaiting(const std::string& job) const {
  return std::find(waiting_.begin(), waiting_.end(), job) != waiting_.end();
}

void JobBoard::StartWaiting() {
  while (!waiting_.empty() && static_cast<int>(running_.size()) < options_.max_running) {
    const std::string id = waiting_.front();
    waiting_.pop_front();  // first: a job that ends at once begins the next one
    const absl::StatusOr<Job> job = store_.GetJob(id);
    if (job.ok() && Resume(*job).ok()) continue;
    waiting_.push_front(id);  // the log cannot be read or written now; Tick tries again
    return;
  }
}

absl::Status JobBoard::Resume(const Job& job) {
  if (job.state != JobState::kRunning) return absl::OkStatus();
  absl::StatusOr<StoredJobState> loaded = LoadJob(*log_, store_, job);
  if (!loaded.ok())
    return store_.SetJobState(job.id, JobState::kFailed, std::string(loaded.status().message()));
  const double now = time_->Seconds();
  for (const Trial& trial : loaded->open) {
    QueuedTrial queued{.name = trial.name,
                       .job = job.id,
                       .target = loaded->job->plan().tasks[trial.task].key.target,
                       .task = trial.task,
                       .attempt = trial.attempt,
                       .losses = trial.lost_attempts,
                       .trace = trial.trace};
    if (trial.state == TrialState::kLeased) {
      queue_->Adopt(std::move(queued), absl::StrCat(kAdoptedHolder, trial.worker), now);
    } else {
      queue_->Add(std::move(queued));
    }
  }
  Entry* entry = Begin(std::move(loaded->job), loaded->elapsed_seconds);
  BuildSearch(entry, [rounds = std::move(loaded->rounds)](JobSearch* search) {
    for (const StoredRound& round : rounds)
      MYCC_RETURN_IF_ERROR(search->Restore(round.task, round.traces, round.state));
    return absl::OkStatus();
  });
  return absl::OkStatus();
}

JobBoard::Entry* JobBoard::Begin(std::unique_ptr<ActiveJob> job, double elapsed_seconds) {
  const std::string id = job->id();
  auto entry = std::make_unique<Entry>();
  entry->job = std::move(job);
  entry->elapsed_before = elapsed_seconds;
  entry->started = time_->Seconds();
  Touch(entry.get());
  return (running_[id] = std::move(entry)).get();
}

void JobBoard::BuildSearch(Entry* entry, std::function<absl::Status(JobSearch*)> restore) {
  struct Built {
    std::unique_ptr<JobSearch> search;
    absl::Status status;
  };
  auto built = std::make_shared<Built>();
  entry->searching = true;
  // An entry outlives its search work: it is not removed while it is searching.
  const ActiveJob* job = entry->job.get();
  ModelBytes models;
  for (const std::string& id : job->stored().models()) {
    absl::StatusOr<StoredModel> model = models_.Load(id);
    if (!model.ok()) continue;
    entry->model_ids[model->kind] = id;
    models[model->kind] = std::move(model->bytes);
  }
  executor_(
      [built, job, models = std::move(models), restore = std::move(restore)] {
        auto search = JobSearch::Create(job->stored(), job->plan().tasks, job->stored_tasks(), models);
        built->status = search.status();
        if (!search.ok()) return;
        built->search = *std::move(search);
        built->status = restore(built->search.get());
      },
      [this, entry, built] {
        entry->searching = false;
        entry->search = std::move(built->search);
        if (!built->status.ok()) EndBefore(entry, JobState::kFailed, std::string(built->status.message()));
        Advance(entry);
      });
}

void JobBoard::AskForRound(Entry* entry) {
  struct Asked {
    std::map<uint32_t, std::vector<Outcome>> outcomes;
    absl::StatusOr<std::optional<SearchRound>> round = absl::UnknownError("");
  };
  auto asked = std::make_shared<Asked>();
  asked->outcomes = entry->job->TakeUntold();
  entry->searching = true;
  executor_(
      [asked, search = entry->search.get(), elapsed = Elapsed(*entry)] {
        for (const auto& [task, outcomes] : asked->outcomes) {
          if (const absl::Status told = search->Tell(task, outcomes); !told.ok()) {
            asked->round = told;
            return;
          }
        }
        asked->round = search->Next(elapsed);
      },
      [this, entry, asked] { OnRound(entry, std::move(asked->round)); });
}

void JobBoard::OnRound(Entry* entry, absl::StatusOr<std::optional<SearchRound>> round) {
  entry->searching = false;
  if (!round.ok()) {
    EndBefore(entry, JobState::kFailed, absl::StrCat("the search failed: ", round.status().message()));
  } else if (!round->has_value()) {
    entry->searched_out = true;
    // Trials in flight belong to the job, unless its time is over.
    if (entry->search->stop_reason() == StopReason::kTime)
      EndBefore(entry, JobState::kDone, WordsOf(StopReason::kTime));
  } else if (!entry->ending) {
    entry->unsaved = **std::move(round);
    SaveRound(entry);
  }
  Advance(entry);
}

void JobBoard::SaveRound(Entry* entry) {
  const SearchRound& round = *entry->unsaved;
  ActiveJob& job = *entry->job;
  const PlannedTask& planned = job.plan().tasks[round.task];
  Generation generation{.job = job.id(), .task = round.task, .generation = round.generation};
  for (const Candidate& candidate : round.candidates) {
    NewTrial& trial = generation.trials.emplace_back();
    trial.trace = candidate.trace;
    if (candidate.predicted_seconds) trial.provenance.set_predicted_score(1 / *candidate.predicted_seconds);
    trial.provenance.set_strategy(
        absl::StrCat(job.stored().spec().strategy(), "/", std::string(OriginName(candidate.origin))));
    trial.provenance.set_seed(job.stored().spec().seed());
    trial.provenance.set_model(entry->model_ids[ModelKind(planned.target)]);
  }
  const v1::SearchState state = entry->search->StateOf(round.task);
  generation.search_state = state.SerializeAsString();
  v1::SchedulerState scheduler = job.scheduler_state(Elapsed(*entry));
  scheduler.add_round_tasks(round.task);
  generation.scheduler_state = scheduler.SerializeAsString();
  if (!store_.AddGeneration(generation).ok()) return;  // Tick tries again

  job.AddRound(round.task, round.generation, state.generations(static_cast<int>(round.generation)));
  for (const Candidate& candidate : round.candidates) {
    const TrialId id{job.id(), round.task, round.generation, candidate.index};
    queue_->Add({.name = TrialName(id),
                 .job = job.id(),
                 .target = planned.key.target,
                 .task = round.task,
                 .trace = candidate.trace});
  }
  entry->unsaved.reset();
  Touch(entry);
}

void JobBoard::Advance(Entry* entry) {
  if (entry->searching) return;
  if (entry->ending) {
    const bool settled = queue_->LeasedOf(entry->job->id()).empty() || time_->Seconds() >= entry->ending->by;
    if (entry->finals == nullptr && settled) BeginFinals(entry);
    if (entry->finals == nullptr || entry->finals->is_open()) return;
    if (entry->models_saved || entry->search == nullptr) {
      Finalize(entry);
    } else {
      SaveModels(entry);
    }
    return;
  }
  if (entry->searched_out) {
    if (entry->job->open_trials() > 0) return;
    EndBefore(entry, JobState::kDone, WordsOf(*entry->search->stop_reason()));
    Advance(entry);
    return;
  }
  if (!entry->unsaved && entry->job->ready_for_round()) AskForRound(entry);
}

void JobBoard::EndBefore(Entry* entry, JobState state, const std::string& message) {
  if (entry->ending) return;
  entry->ending = Ending{state, message, time_->Seconds() + options_.ending_seconds};
  queue_->DropWaiting(entry->job->id());
  Touch(entry);
}

void JobBoard::BeginFinals(Entry* entry) {
  queue_->DropWaiting(entry->job->id());  // trials that came back meanwhile
  entry->finals = std::make_unique<JobFinals>(log_, entry->job.get());
  if (entry->ending->state != JobState::kDone) return;
  for (QueuedTrial& round : entry->finals->Plan()) queue_->Add(std::move(round));
  entry->finals_by = time_->Seconds() + options_.finals_seconds;
  Touch(entry);
}

absl::Status JobBoard::FinishRound(const std::string& job, const std::string& round,
                                   const std::vector<v1::MeasureResult>& results) {
  const auto found = running_.find(job);
  if (found == running_.end() || found->second->finals == nullptr) return absl::OkStatus();
  Entry* entry = found->second.get();
  MYCC_RETURN_IF_ERROR(entry->finals->Finish(round, results));
  entry->finals_by = time_->Seconds() + options_.finals_seconds;
  Touch(entry);
  Advance(entry);
  return absl::OkStatus();
}

void JobBoard::GiveUpRound(const std::string& job, const std::string& round, const std::string& why) {
  const auto found = running_.find(job);
  if (found == running_.end() || found->second->finals == nullptr) return;
  Entry* entry = found->second.get();
  entry->finals->GiveUp(round, why);
  Touch(entry);
  Advance(entry);
}

void JobBoard::WatchFinals(Entry* entry) {
  const double now = time_->Seconds();
  if (!queue_->LeasedOf(entry->job->id()).empty()) entry->finals_by = now + options_.finals_seconds;
  if (now < entry->finals_by) return;
  entry->finals->GiveUpAll(absl::StrCat("no worker took it in ", options_.finals_seconds, " s"));
  Touch(entry);
}

void JobBoard::SaveModels(Entry* entry) {
  auto models = std::make_shared<ModelBytes>();
  entry->searching = true;
  executor_([models, search = entry->search.get()] { *models = search->Models(); },
            [this, entry, models] {
              entry->searching = false;
              entry->models_saved = true;
              // The next job starts from less when this fails, and that is all.
              for (const auto& [kind, bytes] : *models)
                (void)models_.Save(kind, absl::StrCat("after job ", entry->job->id()), bytes);
              Advance(entry);
            });
}

void JobBoard::Finalize(Entry* entry) {
  const std::string id = entry->job->id();
  for (uint32_t task = 0; task < entry->job->plan().tasks.size(); ++task) {
    // For people; the job's state is what counts.
    (void)store_.FinishTask(id, task, entry->job->TaskOutcome(task));
  }
  std::string message = entry->ending->message;
  if (const std::string failures = entry->finals->Failures(); !failures.empty())
    absl::StrAppend(&message, "; ", failures);
  if (!store_.SetJobState(id, entry->ending->state, message).ok()) return;  // Tick tries again
  queue_->DropJob(id);
  running_.erase(id);
  ++revision_;
  StartWaiting();
}

void JobBoard::OnFinished(const TrialId& trial, const v1::MeasureResult& result) {
  const auto found = running_.find(trial.job);
  if (found == running_.end()) return;
  Entry* entry = found->second.get();
  entry->job->Finish(trial.task, trial.generation, trial.index, result);
  Touch(entry);
  Advance(entry);
}

void JobBoard::Tick() {
  StartWaiting();
  std::vector<std::string> ids;  // entries may go while they are advanced
  for (const auto& [id, entry] : running_) ids.push_back(id);
  for (const std::string& id : ids) {
    const auto found = running_.find(id);
    if (found == running_.end()) continue;
    Entry* entry = found->second.get();
    const double budget = entry->job->stored().spec().budget_seconds();
    if (budget > 0 && Elapsed(*entry) >= budget)
      EndBefore(entry, JobState::kDone, WordsOf(StopReason::kTime));
    if (entry->finals != nullptr && entry->finals->is_open()) WatchFinals(entry);
    if (entry->unsaved && !entry->searching && !entry->ending) SaveRound(entry);
    Advance(entry);
  }
}

const ActiveJob* JobBoard::Leasable(const std::string& job) const {
  const auto found = running_.find(job);
  if (found == running_.end()) return nullptr;
  const Entry& entry = *found->second;
  const bool is_over = entry.ending && (entry.finals == nullptr || !entry.finals->is_open());
  return is_over ? nullptr : entry.job.get();
}

absl::StatusOr<v1::JobProgress> JobBoard::Cancel(const std::string& job) {
  const auto found = running_.find(job);
  if (found != running_.end()) {
    Entry* entry = found->second.get();
    EndBefore(entry, JobState::kCancelled, "cancelled");
    if (entry->finals != nullptr) entry->finals->GiveUpAll("cancelled");
    Advance(entry);
    return Progress(job);
  }
  MYCC_ASSIGN_OR_RETURN(const Job known, store_.GetJob(job));
  if (known.state == JobState::kRunning) {
    MYCC_RETURN_IF_ERROR(store_.SetJobState(job, JobState::kCancelled, "cancelled"));
    std::erase(waiting_, job);
  }
  return Progress(job);
}

uint64_t JobBoard::RevisionOf(const std::string& job) const {
  const auto found = running_.find(job);
  return found == running_.end() ? 0 : found->second->revision;
}

absl::StatusOr<v1::JobProgress> JobBoard::Progress(const std::string& job) {
  const auto found = running_.find(job);
  if (found != running_.end()) return ProgressOf(*found->second, /*with_tasks=*/true);
  MYCC_ASSIGN_OR_RETURN(const Job known, store_.GetJob(job));
  MYCC_ASSIGN_OR_RETURN(const StoredJobState loaded, LoadJob(*log_, store_, known));
  return ProgressOfEnded(known, *loaded.job, /*with_tasks=*/true);
}

absl::StatusOr<std::vector<v1::JobProgress>> JobBoard::List(uint32_t limit) {
  MYCC_ASSIGN_OR_RETURN(std::vector<Job> jobs, store_.ListJobs());
  std::reverse(jobs.begin(), jobs.end());
  if (limit > 0 && jobs.size() > limit) jobs.resize(limit);
  std::vector<v1::JobProgress> rows;
  for (const Job& job : jobs) {
    const auto found = running_.find(job.id);
    if (found != running_.end()) {
      rows.push_back(ProgressOf(*found->second, /*with_tasks=*/false));
      continue;
    }
    const absl::StatusOr<StoredJobState> loaded = LoadJob(*log_, store_, job);
    if (loaded.ok()) rows.push_back(ProgressOfEnded(job, *loaded->job, /*with_tasks=*/false));
  }
  return rows;
}

v1::JobProgress JobBoard::ProgressOf(const Entry& entry, bool with_tasks) const {
  v1::JobProgress progress = entry.job->Progress(with_tasks);
  progress.set_state(v1::JOB_STATE_RUNNING);
  progress.set_revision(entry.revision);
  progress.set_elapsed_seconds(Elapsed(entry));
  if (entry.ending) progress.set_message(absl::StrCat("ending: ", entry.ending->message));
  if (entry.finals != nullptr && entry.finals->is_open())
    progress.set_message(absl::StrCat(entry.ending->message, "; ", entry.finals->Progress()));
  return progress;
}

v1::JobProgress JobBoard::ProgressOfEnded(const Job& job, const ActiveJob& active, bool with_tasks) const {
  v1::JobProgress progress = active.Progress(with_tasks);
  progress.set_state(WireState(job.state));
  progress.set_message(job.state != JobState::kRunning ? job.message
                       : IsWaiting(job.id)             ? "waiting for its turn"
                                                       : "interrupted; continues when it is submitted again");
  progress.set_elapsed_seconds(static_cast<double>(job.updated_unix_micros - job.created_unix_micros) / 1e6);
  return progress;
}

}  // namespace mycc
