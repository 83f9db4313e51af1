#include "server/job_admission.h"

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
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

std::string RandomSubmission() {
  std::random_device random;
  return absl::StrCat(random(), "-", random(), "-", random(), "-", random());
}

}  // namespace

JobAdmission::JobAdmission(JobAdmissionOptions options, TuningLog* log, JobStore* store, ModelStore* models,
                           LeaseQueue* queue, const TimeSource* time, WriteExecutor write,
                           RunningJobs* running, JobRounds* rounds, JobEndings* endings, AdvanceJob advance)
    : options_(options),
      log_(log),
      store_(store),
      models_(models),
      queue_(queue),
      time_(time),
      write_(std::move(write)),
      running_(running),
      rounds_(rounds),
      endings_(endings),
      advance_(std::move(advance)) {}

absl::Status JobAdmission::Start() {
  if (!options_.resume_all) return absl::OkStatus();
  constexpr JobState kUnfinished[] = {JobState::kRunning};
  MYCC_ASSIGN_OR_RETURN(const std::vector<Job> unfinished, store_->ListJobs(kUnfinished));
  for (const Job& job : unfinished) waiting_.push_back(job.id);
  StartWaiting();
  return absl::OkStatus();
}

absl::StatusOr<v1::JobProgress> JobAdmission::Submit(const v1::SubmitJobRequest& request) {
  MYCC_ASSIGN_OR_RETURN(const JobPlan plan, PlanJob(request.spec()));
  const std::string submission = request.submission().empty() ? RandomSubmission() : request.submission();
  // The submission's jobs, oldest first: one that was cancelled or failed gives way to a new one.
  for (int n = 1;; ++n) {
    const std::string id = JobIdOf(submission, n);
    const absl::StatusOr<Job> known = store_->GetJob(id);
    if (absl::IsNotFound(known.status())) {
      MYCC_RETURN_IF_ERROR(Create(id, plan, submission));
      return Progress(id);
    }
    MYCC_RETURN_IF_ERROR(known.status());
    const bool unfinished = known->state == JobState::kRunning;
    if (unfinished && !running_->contains(id) && !IsWaiting(id)) {
      waiting_.push_back(id);
      StartWaiting();
    }
    if (unfinished || (known->state == JobState::kDone && !plan.spec.fresh())) return Progress(id);
  }
}

absl::Status JobAdmission::Create(const std::string& id, const JobPlan& plan, const std::string& submission) {
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
    if (const auto model = models_->LoadNewest(kind); model.ok()) stored.add_models(model->id);
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
  MYCC_RETURN_IF_ERROR(store_->CreateJob(job, tasks));
  if (all_reused) return store_->SetJobState(id, JobState::kDone, "the log already held what was asked for");
  waiting_.push_back(id);
  StartWaiting();
  return absl::OkStatus();
}

bool JobAdmission::IsWaiting(const std::string& job) const {
  return std::find(waiting_.begin(), waiting_.end(), job) != waiting_.end();
}

void JobAdmission::StartWaiting() {
  while (!waiting_.empty() && static_cast<int>(running_->size()) < options_.max_running) {
    const std::string id = waiting_.front();
    waiting_.pop_front();  // first: a job that ends at once begins the next one
    const absl::StatusOr<Job> job = store_->GetJob(id);
    if (job.ok() && Resume(*job).ok()) continue;
    waiting_.push_front(id);  // the log cannot be read or written now; Tick tries again
    return;
  }
}

absl::Status JobAdmission::Resume(const Job& job) {
  if (job.state != JobState::kRunning) return absl::OkStatus();
  absl::StatusOr<StoredJobState> loaded = LoadJob(*log_, *store_, job);
  if (!loaded.ok())
    return store_->SetJobState(job.id, JobState::kFailed, std::string(loaded.status().message()));
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
  auto begun = std::make_unique<RunningJob>(std::move(loaded->job), loaded->elapsed_seconds, now);
  RunningJob* const running = ((*running_)[job.id] = std::move(begun)).get();
  rounds_->BuildSearch(running, [rounds = std::move(loaded->rounds)](JobSearch* search) {
    for (const StoredRound& round : rounds)
      MYCC_RETURN_IF_ERROR(search->Restore(round.task, round.traces, round.state));
    return absl::OkStatus();
  });
  return absl::OkStatus();
}

absl::StatusOr<v1::JobProgress> JobAdmission::Cancel(const std::string& job) {
  const auto found = running_->find(job);
  if (found != running_->end()) {
    RunningJob* const running = found->second.get();
    endings_->End(running, JobState::kCancelled, "cancelled");
    if (running->finals != nullptr) running->finals->GiveUpAll("cancelled");
    advance_(running);
    return Progress(job);
  }
  MYCC_ASSIGN_OR_RETURN(const Job known, store_->GetJob(job));
  if (known.state == JobState::kRunning) {
    MYCC_RETURN_IF_ERROR(store_->SetJobState(job, JobState::kCancelled, "cancelled"));
    std::erase(waiting_, job);
  }
  return Progress(job);
}

absl::StatusOr<v1::JobProgress> JobAdmission::Progress(const std::string& job) {
  const auto found = running_->find(job);
  if (found != running_->end()) return ProgressOf(*found->second, /*with_tasks=*/true);
  MYCC_ASSIGN_OR_RETURN(const Job known, store_->GetJob(job));
  MYCC_ASSIGN_OR_RETURN(const StoredJobState loaded, LoadJob(*log_, *store_, known));
  return ProgressOfEnded(known, *loaded.job, /*with_tasks=*/true);
}

absl::StatusOr<std::vector<v1::JobProgress>> JobAdmission::List(uint32_t limit) {
  MYCC_ASSIGN_OR_RETURN(std::vector<Job> jobs, store_->ListJobs());
  std::reverse(jobs.begin(), jobs.end());
  if (limit > 0 && jobs.size() > limit) jobs.resize(limit);
  std::vector<v1::JobProgress> rows;
  for (const Job& job : jobs) {
    const auto found = running_->find(job.id);
    if (found != running_->end()) {
      rows.push_back(ProgressOf(*found->second, /*with_tasks=*/false));
      continue;
    }
    const absl::StatusOr<StoredJobState> loaded = LoadJob(*log_, *store_, job);
    if (loaded.ok()) rows.push_back(ProgressOfEnded(job, *loaded->job, /*with_tasks=*/false));
  }
  return rows;
}

v1::JobProgress JobAdmission::ProgressOf(const RunningJob& job, bool with_tasks) const {
  v1::JobProgress progress = job.active->Progress(with_tasks);
  progress.set_state(v1::JOB_STATE_RUNNING);
  progress.set_revision(job.revision);
  progress.set_elapsed_seconds(job.Elapsed(time_->Seconds()));
  if (job.ending) progress.set_message(absl::StrCat("ending: ", job.ending->message));
  if (job.finals != nullptr && job.finals->is_open())
    progress.set_message(absl::StrCat(job.ending->message, "; ", job.finals->Progress()));
  return progress;
}

v1::JobProgress JobAdmission::ProgressOfEnded(const Job& job, const ActiveJob& active,
                                              bool with_tasks) const {
  v1::JobProgress progress = active.Progress(with_tasks);
  progress.set_state(WireState(job.state));
  progress.set_message(job.state != JobState::kRunning ? job.message
                       : IsWaiting(job.id)             ? "waiting for its turn"
                                                       : "interrupted; continues when it is submitted again");
  progress.set_elapsed_seconds(static_cast<double>(job.updated_unix_micros - job.created_unix_micros) / 1e6);
  return progress;
}

}  // namespace mycc
