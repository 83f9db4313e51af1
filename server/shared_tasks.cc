#include "server/shared_tasks.h"

#include <memory>

#include "base/status.h"
#include "server/history.h"
#include "server/listed_job.h"
#include "server/scheduler_terms.h"
#include "server/urgency.h"

namespace mycc {
namespace {

constexpr double kShareRetrySeconds = 1;
constexpr double kTakenUpSeconds = 30;  // after a restart, jobs are taken up within these
constexpr double kStillSeconds = 120;   // so long a task may stand still that another job measures

// Whether the other job measures as much of each task as this one asks for. Limits of a whole job are shared
// by its tasks.
bool AsksForAsMuch(const JobLedger& others, const JobLedger& ledger) {
  const v1::JobSpec &other = others.stored().spec(), &job = ledger.stored().spec();
  const bool has_same_limits =
      other.trials() == job.trials() && other.total_trials() == job.total_trials() &&
      other.budget_seconds() == job.budget_seconds() && other.min_gain() == job.min_gain() &&
      (job.min_gain() == 0 || HasTimeLimit(others.stored()) == HasTimeLimit(ledger.stored()));
  if (other.total_trials() == 0 && other.budget_seconds() == 0 && other.min_gain() == 0)
    return has_same_limits || (job.trials() > 0 && other.trials() >= job.trials());
  return has_same_limits && others.plan().tasks.size() <= ledger.plan().tasks.size();
}

// Whether the other job's deadline leaves it the time that this one has.
bool HasAsLong(const JobTerms& other, const JobTerms& job) {
  return other.deadline_unix_micros == 0 ||
         (job.deadline_unix_micros > 0 && other.deadline_unix_micros >= job.deadline_unix_micros);
}

// Whether the other job has measured what this one asks for, and goes on.
bool HasEnough(const RunningJob& other, uint32_t task, const v1::JobSpec& job) {
  return other.wants_proposals() && job.trials() > 0 && other.ledger->best_seconds(task) > 0 &&
         other.ledger->num_measured(task) >= job.trials();
}

}  // namespace

int SharedTasks::SameTask(const JobLedger& other, const PlannedTask& task) {
  const std::vector<PlannedTask>& tasks = other.plan().tasks;
  for (uint32_t i = 0; i < tasks.size(); ++i) {
    const bool is_same = tasks[i].key.workload_hash == task.key.workload_hash &&
                         tasks[i].key.target == task.key.target && tasks[i].protocol == task.protocol;
    if (is_same && other.searches(i)) return static_cast<int>(i);
  }
  return -1;
}

bool SharedTasks::MayMeasureFor(const RunningJob& other, const JobLedger& ledger,
                                const JobTerms& terms) const {
  const v1::JobSpec& spec = ledger.stored().spec();
  const bool is_urgent = UrgencyOf(other.terms, *owners_) >= UrgencyOf(terms, *owners_);
  const bool is_over = other.ending && other.ending->state != JobState::kDone;
  return is_urgent && !is_over && other.ledger->stored().spec().strategy() == spec.strategy() &&
         AsksForAsMuch(*other.ledger, ledger) && HasAsLong(other.terms, terms);
}

// Trials that wait for a device are no reason: this job's would wait as well.
bool SharedTasks::StandsStill(const RunningJob& other, uint32_t task, RunningJob* job, uint32_t own) const {
  const double now = time_->Seconds();
  const bool is_larger = other.ledger->plan().tasks.size() > job->ledger->plan().tasks.size();
  const bool is_silent = other.asked_at && now - *other.asked_at >= kStillSeconds;
  if (other.ending || other.ledger->open_trials(task) > 0) {
    job->still_since.erase(own);
    return false;
  }
  const double since = job->still_since.try_emplace(own, now).first->second;
  return is_silent || (is_larger && now - since >= kStillSeconds);
}

TaskSpecs SharedTasks::Share(JobLedger* ledger) const {
  const v1::JobSpec& spec = ledger->stored().spec();
  TaskSpecs changed;
  if (ledger->num_proposals() > 0 || spec.fresh() || IsListed(spec)) return changed;
  const JobTerms terms = TermsOf(ledger->stored());
  for (const auto& [id, other] : *running_) {
    if (id == ledger->id() || !MayMeasureFor(*other, *ledger, terms)) continue;
    for (uint32_t task = 0; task < ledger->plan().tasks.size(); ++task) {
      if (!ledger->searches(task) || SameTask(*other->ledger, ledger->plan().tasks[task]) < 0) continue;
      v1::StoredTask shared = ledger->stored_tasks()[task];
      shared.set_measured_by(id);
      changed.emplace_back(task, shared.SerializeAsString());
      ledger->SetStoredTask(task, std::move(shared));
    }
  }
  return changed;
}

void SharedTasks::Watch(RunningJob* job) {
  if (job->ending || job->under_way > 0 || time_->Seconds() < job->retry_at) return;
  std::vector<uint32_t> over;
  for (const uint32_t task : job->ledger->followed()) {
    const std::string& leader = job->ledger->stored_tasks()[task].measured_by();
    const auto found = running_->find(leader);
    if (found == running_->end()) {
      const bool waits_long = time_->Seconds() - job->started >= kTakenUpSeconds;
      if (waits_long || !is_on_its_way_(leader)) over.push_back(task);
      continue;
    }
    const JobLedger& others = *found->second->ledger;
    const int same = SameTask(others, job->ledger->plan().tasks[task]);
    const auto of_other = static_cast<uint32_t>(same);
    if (same < 0 || !MayMeasureFor(*found->second, *job->ledger, job->terms) ||
        HasEnough(*found->second, of_other, job->ledger->stored().spec()) ||
        StandsStill(*found->second, of_other, job, task)) {
      over.push_back(task);
    } else {
      job->ledger->SetKnownBest(task, others.best_seconds(of_other));
    }
  }
  if (over.empty()) return;
  ++job->under_way;
  ReadLog(
      executors_.read,
      [ledger = job->ledger.get(), over](TuningLog* log) { return Settle(*ledger, over, log); },
      [this, job](absl::StatusOr<AllSettled> settled) {
        --job->under_way;
        if (settled.ok()) {
          Write(job, std::make_shared<const AllSettled>(*std::move(settled)));
        } else {
          job->retry_at = time_->Seconds() + kShareRetrySeconds;
        }
        advance_(job);
      });
}

// A task is measured when the log holds as many trials as the job asks for, or the other job has come to its
// own end, which was to be the same; and when there is a valid schedule.
absl::StatusOr<SharedTasks::AllSettled> SharedTasks::Settle(const JobLedger& ledger,
                                                            const std::vector<uint32_t>& tasks,
                                                            TuningLog* log) {
  const JobStore store(log);
  History history(log);
  AllSettled all;
  for (const uint32_t task : tasks) {
    const PlannedTask& planned = ledger.plan().tasks[task];
    const std::string& leader = ledger.stored_tasks()[task].measured_by();
    const absl::StatusOr<Job> other = store.GetJob(leader);
    const bool is_done = other.ok() && other->state == JobState::kDone;
    const absl::StatusOr<StoredRecord> best =
        log->Best({planned.key.workload_hash, planned.key.target}, planned.protocol);
    MYCC_ASSIGN_OR_RETURN(v1::StoredTask stored,
                          history.Recall(planned, ledger.stored().spec().trials(), /*fresh=*/false));
    stored.set_reused(best.ok() && (is_done || stored.reused()));
    if (stored.reused()) stored.set_measured_by(leader);
    all.push_back({task, std::move(stored), best.ok() ? best->record.result().timing().seconds() : 0});
  }
  return all;
}

void SharedTasks::Write(RunningJob* job, const std::shared_ptr<const AllSettled>& settled) {
  TaskSpecs specs;
  for (const Settled& one : *settled) specs.emplace_back(one.task, one.stored.SerializeAsString());
  ++job->under_way;
  executors_.write([store = store_, id = job->id(),
                    specs = std::move(specs)] { return WriteTaskSpecs(store, id, specs, ""); },
                   [this, job, settled](const absl::Status& status) {
                     --job->under_way;
                     if (status.ok() && !job->ending) Apply(job, *settled);
                     if (!status.ok()) job->retry_at = time_->Seconds() + kShareRetrySeconds;
                     advance_(job);
                   });
}

void SharedTasks::Apply(RunningJob* job, const AllSettled& settled) {
  bool has_more_to_search = false;
  for (const Settled& one : settled) {
    job->ledger->SetStoredTask(one.task, one.stored);
    job->ledger->SetKnownBest(one.task, one.stored.reused() ? one.best_seconds : 0);
    has_more_to_search |= !one.stored.reused();
  }
  job->Touch();
  if (has_more_to_search) proposals_->SearchMore(job);
}

}  // namespace mycc
