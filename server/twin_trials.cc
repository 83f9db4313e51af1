#include "server/twin_trials.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status.h"
#include "db/shared_record.h"
#include "server/listed_job.h"
#include "server/urgency.h"

namespace mycc {
namespace {

std::string JobOf(const std::string& trial) { return trial.substr(0, trial.find('/')); }

const std::string& TraceOf(const QueuedWork& trial) { return std::get<TrialWork>(trial.what).trace; }

bool MeasuresAll(const RunningJob& job) {
  const v1::JobSpec& spec = job.ledger->stored().spec();
  return spec.fresh() || IsListed(spec);
}

}  // namespace

std::string TwinTrials::KeyOf(const JobLedger& ledger, const QueuedWork& trial) {
  const PlannedTask& task = ledger.plan().tasks[trial.task];
  return Sha256Hex(
      absl::StrCat(task.key.workload_hash, "\n", task.key.target, "\n", task.protocol, "\n", TraceOf(trial)));
}

const RunningJob* TwinTrials::Alive(const std::string& job) const {
  const auto found = running_->find(job);
  return found == running_->end() || found->second->ending ? nullptr : found->second.get();
}

bool TwinTrials::MayLead(const std::string& leader, const JobTerms& terms) const {
  const RunningJob* const job = Alive(JobOf(leader));
  if (job == nullptr) return false;
  if (queue_->is_leased(leader)) return true;  // it is over soon
  return UrgencyOf(job->terms, *owners_) >= UrgencyOf(terms, *owners_);
}

std::set<std::string> TwinTrials::JobsLike(const RunningJob& job,
                                           const std::vector<QueuedWork>& trials) const {
  std::set<std::string> jobs;
  if (!job.ledger->stored().begun_anew().empty()) jobs.insert(job.id());
  const PlannedTask& task = job.ledger->plan().tasks[trials[0].task];
  for (const auto& [id, other] : *running_) {
    const std::vector<PlannedTask>& tasks = other->ledger->plan().tasks;
    const bool has_it = std::ranges::any_of(tasks, [&task](const PlannedTask& known) {
      return known.key.workload_hash == task.key.workload_hash && known.key.target == task.key.target &&
             known.protocol == task.protocol;
    });
    if (id != job.id() && has_it) jobs.insert(id);
  }
  return jobs;
}

void TwinTrials::Queue(RunningJob* job, std::vector<QueuedWork> trials) {
  if (trials.empty()) return;
  if (MeasuresAll(*job)) {
    for (QueuedWork& trial : trials) {
      Own(*job->ledger, trial);
      queue_->Add(std::move(trial));
    }
    return;
  }
  const std::set<std::string> jobs = JobsLike(*job, trials);
  if (jobs.empty()) {
    for (QueuedWork& trial : trials) Add(std::move(trial));
    return;
  }
  const auto asked = std::make_shared<const std::vector<QueuedWork>>(std::move(trials));
  ++job->under_way;
  ReadLog(
      executors_.read,
      [ledger = job->ledger.get(), asked, jobs](TuningLog* log) { return Find(*ledger, *asked, jobs, log); },
      [this, job, asked](const absl::StatusOr<AllFound>& found) {
        --job->under_way;
        for (size_t i = 0; i < asked->size() && !job->ending; ++i) {
          if (found.ok() && (*found)[i]) {
            Finish((*asked)[i], *(*found)[i]);
          } else {
            Add((*asked)[i]);  // also where the log cannot be read now: then it is measured
          }
        }
        advance_(job);
      });
}

absl::StatusOr<TwinTrials::AllFound> TwinTrials::Find(const JobLedger& ledger,
                                                      const std::vector<QueuedWork>& trials,
                                                      const std::set<std::string>& jobs, TuningLog* log) {
  AllFound all;
  for (const QueuedWork& trial : trials) {
    const PlannedTask& task = ledger.plan().tasks[trial.task];
    MYCC_ASSIGN_OR_RETURN(
        const std::optional<StoredRecord> known,
        RecordOfJobs(*log, {task.key.workload_hash, task.key.target}, task.protocol, TraceOf(trial), jobs));
    all.push_back(known ? std::make_optional(Found{known->record.trial(), known->record.result()})
                        : std::nullopt);
  }
  return all;
}

void TwinTrials::Finish(const QueuedWork& trial, const Found& found) {
  executors_.write(
      [log = log_, name = trial.name, other = found.trial] { return FinishByRecordOf(log, name, other); },
      [this, trial, found](const absl::Status& status) {
        if (Alive(trial.job) == nullptr) return;
        const absl::StatusOr<TrialId> id = ParseTrialName(trial.name);
        if (status.ok() && id.ok()) {
          on_measured_(*id, found.result);
        } else {
          Add(trial);  // it is measured, since the log does not take the other's result
        }
      });
}

void TwinTrials::Add(QueuedWork trial) {
  const RunningJob* const job = Alive(trial.job);
  if (job == nullptr) return;
  const std::string key = KeyOf(*job->ledger, trial);
  const auto found = leaders_.find(key);
  if (found == leaders_.end()) return Lead(key, std::move(trial));
  const std::string leader = found->second;
  if (MayLead(leader, job->terms)) {
    twins_[leader].push_back(std::move(trial));
    return;
  }
  // They change places, where the other one is still in the queue and need not be measured in any case.
  std::optional<QueuedWork> other;
  const RunningJob* const of_other = Alive(JobOf(leader));
  if (of_other == nullptr || !MeasuresAll(*of_other))
    other = queue_->Withdraw(JobOf(leader), trial.target, leader);
  std::vector<QueuedWork> twins;
  if (auto known = twins_.extract(leader)) twins = std::move(known.mapped());
  keys_.erase(leader);
  const std::string name = trial.name;
  Lead(key, std::move(trial));
  if (other) twins.push_back(*std::move(other));
  if (!twins.empty()) twins_[name] = std::move(twins);
}

void TwinTrials::Lead(const std::string& key, QueuedWork trial) {
  leaders_[key] = trial.name;
  keys_[trial.name] = key;
  queue_->Add(std::move(trial));
}

void TwinTrials::Own(const JobLedger& ledger, const QueuedWork& trial) {
  const std::string key = KeyOf(ledger, trial);
  if (leaders_.try_emplace(key, trial.name).second) keys_[trial.name] = key;
}

void TwinTrials::OnFinished(const std::string& trial, const v1::MeasureResult& result) {
  if (const auto key = keys_.extract(trial)) leaders_.erase(key.mapped());
  auto twins = twins_.extract(trial);
  if (twins.empty()) return;
  for (QueuedWork& twin : twins.mapped()) {
    if (IsInfrastructureFailure(result.status())) {
      Add(std::move(twin));  // it was given up, which says nothing of the candidate
    } else if (Alive(twin.job) != nullptr) {
      Finish(twin, {trial, result});
    }
  }
}

void TwinTrials::Watch() {
  std::vector<std::string> stuck;
  for (const auto& [leader, twins] : twins_) {
    const bool is_stuck = std::ranges::any_of(twins, [&](const QueuedWork& twin) {
      const RunningJob* const job = Alive(twin.job);
      return job == nullptr || !MayLead(leader, job->terms);
    });
    if (is_stuck) stuck.push_back(leader);
  }
  for (const std::string& leader : stuck) {
    auto twins = twins_.extract(leader);
    for (QueuedWork& twin : twins.mapped()) Add(std::move(twin));
  }
}

void TwinTrials::Forget(const std::string& job) {
  const std::string first = job + "/";
  for (auto key = keys_.lower_bound(first); key != keys_.end() && JobOf(key->first) == job;) {
    leaders_.erase(key->second);
    key = keys_.erase(key);
  }
}

}  // namespace mycc
