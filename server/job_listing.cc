#include "server/job_listing.h"

#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "proto/job_state.pb.h"
#include "server/load_job.h"

namespace mycc {
namespace {

// A search that takes longer for a round is spoken of.
constexpr int kLongAnswerSeconds = 30;

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

// All that can be told of a job whose tasks are not there yet, or cannot be read.
v1::JobProgress ProgressOfSpec(const Job& job) {
  v1::JobProgress progress;
  progress.set_job(job.id);
  progress.set_owner(job.owner);
  progress.set_created_unix_micros(job.created_unix_micros);
  v1::StoredJob stored;
  if (!stored.ParseFromString(job.spec)) return progress;
  const v1::JobSpec& spec = stored.spec();
  progress.set_name(spec.name());
  ShowTerms(TermsOf(stored), &progress);
  progress.set_target(spec.target());
  progress.set_budget_seconds(spec.budget_seconds());
  progress.set_trials_planned(TrialsPlanned(spec, spec.tasks_size()));
  progress.set_is_model(spec.is_model());
  return progress;
}

// From all that the log has of the job.
absl::StatusOr<v1::JobProgress> ProgressOfTasks(TuningLog* log, const JobStore& store, const Job& job) {
  MYCC_ASSIGN_OR_RETURN(const bool has_tasks, store.HasTasks(job.id));
  if (!has_tasks) return ProgressOfSpec(job);
  const absl::StatusOr<LoadedJob> loaded = LoadJob(*log, store, job);
  return loaded.ok() ? loaded->ledger->Progress(/*with_tasks=*/true) : ProgressOfSpec(job);
}

// The remark, on a job that goes its way, that people should know.
std::string RemarkOn(const JobLedger& ledger) {
  const std::vector<uint32_t> followed = ledger.followed();
  if (followed.empty()) return ledger.stored().begun_anew();
  std::set<std::string> leaders;
  for (const uint32_t task : followed) leaders.insert(ledger.stored_tasks()[task].measured_by());
  return absl::StrCat(followed.size(), " of ", ledger.plan().tasks.size(), " tasks are measured by job ",
                      absl::StrJoin(leaders, " and "));
}

// A space that holds nothing new holds no gain.
std::optional<double> GainOfTwice(const RunningJob& job) {
  if (job.searched_out == StopReason::kExhausted) return 0;
  return job.ledger->GainOfTwice();
}

void KeepNoTasks(v1::JobProgress* progress) {
  progress->clear_tasks();
  progress->clear_milestones();
  progress->clear_devices();
}

}  // namespace

std::string SummaryOf(v1::JobProgress progress, JobState state, const std::string& message) {
  progress.set_state(WireState(state));
  progress.set_message(message);
  progress.clear_revision();
  progress.clear_waiters();
  progress.clear_trouble();
  return progress.SerializeAsString();
}

JobListing::JobListing(JobStore* store, const RunningJobs* running, const WaitingJobs* turns,
                       const JobWaiters* waiters, const Owners* owners, const TimeSource* time,
                       Executors executors)
    : store_(store),
      running_(running),
      turns_(turns),
      waiters_(waiters),
      owners_(owners),
      time_(time),
      executors_(std::move(executors)) {}

void JobListing::Show(const std::string& job, const JobReply& reply) const {
  const auto found = running_->find(job);
  if (found != running_->end()) return reply(ProgressOf(*found->second, /*with_tasks=*/true));
  ReadLog(
      executors_.read, [job](TuningLog* log) { return Read(log, job); },
      [this, job, reply](absl::StatusOr<Stored> stored) {
        // It may have been taken up meanwhile.
        const auto begun = running_->find(job);
        reply(begun != running_->end() ? ProgressOf(*begun->second, /*with_tasks=*/true)
                                       : Shown(std::move(stored)));
      });
}

void JobListing::List(uint32_t limit, const Reply<v1::ListJobsResponse>& reply) const {
  std::set<std::string> running;
  for (const auto& [id, job] : *running_) running.insert(id);
  const auto read = [limit, running](TuningLog* log) {
    absl::StatusOr<std::vector<Stored>> jobs{std::vector<Stored>()};
    const absl::StatusOr<std::vector<JobSummary>> rows = JobStore(log).ListSummaries(limit);
    if (!rows.ok()) return absl::StatusOr<std::vector<Stored>>(rows.status());
    for (const JobSummary& row : *rows) {
      Stored& job = jobs->emplace_back();
      if (running.contains(row.id)) {
        job.progress.set_job(row.id);
      } else {
        job = ReadRow(log, row);
      }
      KeepNoTasks(&job.progress);
    }
    return jobs;
  };
  ReadLog(executors_.read, read, [this, limit, running, reply](absl::StatusOr<std::vector<Stored>> jobs) {
    if (!jobs.ok()) return reply(jobs.status());
    v1::ListJobsResponse response;
    for (Stored& job : *jobs) {
      const auto found = running_->find(job.progress.job());
      const bool runs = !job.has_ended && found != running_->end();
      // One that has ended since was not read.
      if (!runs && running.contains(job.progress.job())) return List(limit, reply);
      *response.add_jobs() = runs ? ProgressOf(*found->second, /*with_tasks=*/false) : *Shown(std::move(job));
    }
    reply(std::move(response));
  });
}

JobListing::Stored JobListing::ReadRow(TuningLog* log, const JobSummary& row) {
  Stored stored{.has_ended = row.state != JobState::kRunning};
  const bool has_summary =
      stored.has_ended && !row.summary.empty() && stored.progress.ParseFromString(row.summary);
  if (has_summary) return stored;
  absl::StatusOr<Stored> read = Read(log, row.id);
  if (read.ok()) return *std::move(read);
  stored.progress.set_job(row.id);
  stored.progress.set_state(WireState(row.state));
  stored.progress.set_message(row.message);
  return stored;
}

absl::StatusOr<JobListing::Stored> JobListing::Read(TuningLog* log, const std::string& id) {
  const JobStore store(log);
  MYCC_ASSIGN_OR_RETURN(const Job job, store.GetJob(id));
  Stored stored{.has_ended = job.state != JobState::kRunning};
  if (stored.has_ended && !job.summary.empty() && stored.progress.ParseFromString(job.summary)) return stored;
  MYCC_ASSIGN_OR_RETURN(stored.progress, ProgressOfTasks(log, store, job));
  stored.progress.set_elapsed_seconds(static_cast<double>(job.updated_unix_micros - job.created_unix_micros) /
                                      1e6);
  stored.progress.set_state(WireState(job.state));
  stored.progress.set_message(job.message);
  if (stored.has_ended) stored.new_summary = SummaryOf(stored.progress, job.state, job.message);
  return stored;
}

absl::StatusOr<v1::JobProgress> JobListing::ReadFromLog(TuningLog* log, const std::string& job) {
  MYCC_ASSIGN_OR_RETURN(Stored stored, Read(log, job));
  return std::move(stored.progress);
}

absl::StatusOr<v1::JobProgress> JobListing::Shown(absl::StatusOr<Stored> stored) const {
  if (!stored.ok()) return stored.status();
  if (!stored->has_ended) Describe(&stored->progress);
  if (!stored->new_summary.empty()) KeepSummary(stored->progress.job(), stored->new_summary);
  return std::move(stored->progress);
}

void JobListing::KeepSummary(const std::string& job, const std::string& summary) const {
  // It is made again where it cannot be kept now.
  executors_.write([store = store_, job, summary] { return store->SetSummary(job, summary); },
                   [](const absl::Status&) {});
}

v1::JobProgress JobListing::ProgressOf(const RunningJob& job, bool with_tasks) const {
  v1::JobProgress progress = job.ledger->Progress(with_tasks);
  ShowTerms(job.terms, &progress);
  progress.set_state(v1::JOB_STATE_RUNNING);
  progress.set_message(owners_->HeldBack(job.terms.owner));
  if (progress.message().empty()) progress.set_message(RemarkOn(*job.ledger));
  progress.set_revision(job.revision);
  progress.set_elapsed_seconds(job.Elapsed(time_->Seconds()));
  progress.set_waiters(waiters_->Count(job.id(), time_->Seconds()));
  if (job.asked_at && time_->Seconds() - *job.asked_at > kLongAnswerSeconds)
    progress.set_message(absl::StrCat("its search has given no answer for ", kLongAnswerSeconds, " s"));
  if (progress.message().empty()) progress.set_message(SearchNote(job));
  if (!job.ending) return progress;
  if (const std::optional<double> gain = GainOfTwice(job)) progress.set_gain_of_twice(*gain);
  progress.set_message(absl::StrCat("ending: ", job.ending->message));
  if (job.finals != nullptr && job.finals->is_open())
    progress.set_message(absl::StrCat(job.ending->message, "; ", job.finals->Progress()));
  if (job.ending->is_unwritable) {
    progress.set_state(WireState(job.ending->state));
    progress.set_message(job.ending->message);
  }
  return progress;
}

// Adds the facts that only the server knows of a job that the log takes for a running one.
void JobListing::Describe(v1::JobProgress* progress) const {
  const std::string& id = progress->job();
  progress->set_waiters(waiters_->Count(id, time_->Seconds()));
  if (const JobTrouble* trouble = turns_->TroubleOf(id); trouble != nullptr) {
    if (!trouble->is_passing) progress->set_state(v1::JOB_STATE_FAILED);
    progress->set_message(std::string(trouble->why.message()));
  } else if (turns_->IsBeingTakenUp(id)) {
    progress->set_message("preparing");
  } else {
    progress->set_message(turns_->Contains(id) ? turns_->WhyWaiting(id)
                                               : "interrupted; continues when it is submitted again");
  }
}

}  // namespace mycc
