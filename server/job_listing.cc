#include "server/job_listing.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
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

// All that can be told without reading the rest of the job.
v1::JobProgress ProgressOfRow(const Job& job) {
  v1::JobProgress progress;
  progress.set_job(job.id);
  progress.set_name(job.owner);
  progress.set_created_unix_micros(job.created_unix_micros);
  return progress;
}

}  // namespace

bool JobQueue::Contains(const std::string& job) const {
  return std::find(waiting.begin(), waiting.end(), job) != waiting.end();
}

const JobTrouble* JobQueue::TroubleOf(const std::string& job) const {
  const auto found = troubles.find(job);
  return found == troubles.end() ? nullptr : &found->second;
}

JobListing::JobListing(const TuningLog* log, const JobStore* store, const RunningJobs* running,
                       const JobQueue* queue, const JobWaiters* waiters, const TimeSource* time)
    : log_(log), store_(store), running_(running), queue_(queue), waiters_(waiters), time_(time) {}

absl::StatusOr<v1::JobProgress> JobListing::Progress(const std::string& job) const {
  const auto found = running_->find(job);
  if (found != running_->end()) return ProgressOfRunning(*found->second, /*with_tasks=*/true);
  MYCC_ASSIGN_OR_RETURN(const Job stored, store_->GetJob(job));
  return ProgressOfStored(stored, /*with_tasks=*/true);
}

absl::StatusOr<std::vector<v1::JobProgress>> JobListing::List(uint32_t limit) const {
  MYCC_ASSIGN_OR_RETURN(std::vector<Job> jobs, store_->ListJobs());
  std::reverse(jobs.begin(), jobs.end());
  if (limit > 0 && jobs.size() > limit) jobs.resize(limit);
  std::vector<v1::JobProgress> rows;
  for (const Job& job : jobs) {
    const auto found = running_->find(job.id);
    rows.push_back(found != running_->end() ? ProgressOfRunning(*found->second, /*with_tasks=*/false)
                                            : ProgressOfStored(job, /*with_tasks=*/false));
  }
  return rows;
}

v1::JobProgress JobListing::ProgressOfRunning(const RunningJob& job, bool with_tasks) const {
  v1::JobProgress progress = job.active->Progress(with_tasks);
  progress.set_state(v1::JOB_STATE_RUNNING);
  progress.set_revision(job.revision);
  progress.set_elapsed_seconds(job.Elapsed(time_->Seconds()));
  progress.set_waiters(waiters_->Count(job.id(), time_->Seconds()));
  if (job.ending) progress.set_message(absl::StrCat("ending: ", job.ending->message));
  if (job.finals != nullptr && job.finals->is_open())
    progress.set_message(absl::StrCat(job.ending->message, "; ", job.finals->Progress()));
  return progress;
}

v1::JobProgress JobListing::ProgressOfStored(const Job& job, bool with_tasks) const {
  const absl::StatusOr<StoredJobState> loaded = LoadJob(*log_, *store_, job);
  v1::JobProgress progress = loaded.ok() ? loaded->job->Progress(with_tasks) : ProgressOfRow(job);
  progress.set_waiters(waiters_->Count(job.id, time_->Seconds()));
  progress.set_elapsed_seconds(static_cast<double>(job.updated_unix_micros - job.created_unix_micros) / 1e6);
  DescribeState(job, &progress);
  return progress;
}

void JobListing::DescribeState(const Job& job, v1::JobProgress* progress) const {
  progress->set_state(WireState(job.state));
  progress->set_message(job.message);
  if (job.state != JobState::kRunning) return;
  if (const JobTrouble* trouble = queue_->TroubleOf(job.id); trouble != nullptr) {
    if (!trouble->is_passing) progress->set_state(v1::JOB_STATE_FAILED);
    progress->set_message(std::string(trouble->why.message()));
  } else {
    progress->set_message(queue_->Contains(job.id) ? "waiting for its turn"
                                                   : "interrupted; continues when it is submitted again");
  }
}

}  // namespace mycc
