#include "server/waiting_jobs.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/status.h"

namespace mycc {

WaitingJobs::WaitingJobs(WaitingJobsOptions options, JobStore* store, const TimeSource* time,
                         Executors executors, JobChanges* changes, RunningJobs* running,
                         JobProposals* proposals, WaitingJobsHooks hooks)
    : options_(options),
      store_(store),
      time_(time),
      executors_(std::move(executors)),
      changes_(changes),
      running_(running),
      proposals_(proposals),
      hooks_(std::move(hooks)) {}

bool WaitingJobs::Contains(const std::string& job) const {
  return taking_up_.contains(job) || std::find(waiting_.begin(), waiting_.end(), job) != waiting_.end();
}

const JobTrouble* WaitingJobs::TroubleOf(const std::string& job) const {
  const auto found = troubles_.find(job);
  return found == troubles_.end() ? nullptr : &found->second;
}

void WaitingJobs::Enqueue(const std::string& job) {
  if (Contains(job) || TroubleOf(job) != nullptr) return;
  waiting_.push_back(job);
  StartWaiting();
}

void WaitingJobs::Forget(const std::string& job) {
  std::erase(waiting_, job);
  troubles_.erase(job);
  Took(job);
}

void WaitingJobs::OnLogGone(const absl::Status& why) {
  std::deque<std::string> ids = std::exchange(waiting_, {});
  for (const auto& [id, taking_up] : taking_up_) ids.push_back(id);
  for (const std::string& id : ids) troubles_[id] = {why, /*is_passing=*/false};
  for (const std::string& id : ids) Took(id);
}

void WaitingJobs::AfterTakingUp(const std::string& job, std::function<void()> call) {
  taking_up_.at(job).afterwards.push_back(std::move(call));
}

bool WaitingJobs::IsOn(const std::string& id, uint64_t number) const {
  const auto found = taking_up_.find(id);
  return found != taking_up_.end() && found->second.number == number;
}

void WaitingJobs::StartWaiting() {
  const double now = time_->Seconds();
  std::vector<std::string> begin;
  size_t room = static_cast<size_t>(options_.max_running);
  room -= std::min(room, running_->size() + taking_up_.size());
  for (const std::string& id : waiting_) {
    if (begin.size() == room) break;
    const JobTrouble* const trouble = TroubleOf(id);
    if (trouble == nullptr || now >= trouble->retry_at) begin.push_back(id);
  }
  for (const std::string& id : begin) {
    std::erase(waiting_, id);
    taking_up_[id].number = ++taken_up_;
    TakeUp(id, taken_up_);
  }
}

absl::StatusOr<WaitingJobs::Found> WaitingJobs::LookUp(TuningLog* log, const std::string& id) {
  const JobStore store(log);
  Found found;
  MYCC_ASSIGN_OR_RETURN(const Job job, store.GetJob(id));
  found.is_over = job.state != JobState::kRunning;
  if (found.is_over) return found;
  MYCC_ASSIGN_OR_RETURN(const bool is_prepared, store.HasTasks(id));
  if (is_prepared) {
    MYCC_ASSIGN_OR_RETURN(found.loaded, LoadJob(*log, store, job));
  } else {
    MYCC_ASSIGN_OR_RETURN(found.prepared, PrepareJob(job, log));
  }
  return found;
}

void WaitingJobs::TakeUp(const std::string& id, uint64_t number) {
  ReadLog(
      executors_.read, [id](TuningLog* log) { return LookUp(log, id); },
      [this, id, number](absl::StatusOr<Found> found) { OnFound(id, number, std::move(found)); });
}

void WaitingJobs::OnFound(const std::string& id, uint64_t number, absl::StatusOr<Found> found) {
  if (!IsOn(id, number)) return;  // cancelled meanwhile
  if (!found.ok()) {
    KeepTrouble(id, found.status());
  } else if (found->is_over) {
    Took(id);
  } else if (found->prepared) {
    WritePrepared(id, number, *std::move(found->prepared));
  } else {
    Run(id, *std::move(found->loaded));
  }
}

void WaitingJobs::WritePrepared(const std::string& id, uint64_t number, PreparedJob prepared) {
  const bool is_done = prepared.is_done;
  executors_.write(
      [store = store_, id, prepared = std::move(prepared)]() -> absl::Status {
        MYCC_RETURN_IF_ERROR(store->AddTasks(id, prepared.spec, prepared.tasks));
        if (!prepared.is_done) return absl::OkStatus();
        return store->SetJobState(id, JobState::kDone, "the log already had the results");
      },
      [this, id, number, is_done](const absl::Status& status) {
        if (!IsOn(id, number)) return;  // cancelled meanwhile
        if (!status.ok()) return KeepTrouble(id, status);
        if (!is_done) return TakeUp(id, number);
        Took(id);
        hooks_.on_ended(id);
      });
}

void WaitingJobs::Run(const std::string& id, LoadedJob loaded) {
  auto begun =
      std::make_unique<RunningJob>(std::move(loaded.ledger), loaded.elapsed_seconds, time_->Seconds());
  RunningJob* const running = ((*running_)[id] = std::move(begun)).get();
  troubles_.erase(id);
  hooks_.queue_trials(*running->ledger, loaded.open);
  proposals_->BuildSearch(running, std::move(loaded.proposals));
  Took(id);
}

void WaitingJobs::Took(const std::string& id) {
  const auto taken = taking_up_.extract(id);
  if (taken.empty()) return;
  for (const std::function<void()>& call : taken.mapped().afterwards) call();
}

void WaitingJobs::KeepTrouble(const std::string& id, const absl::Status& why) {
  const bool is_passing = IsPassing(why);
  troubles_[id] = {why, is_passing, time_->Seconds() + options_.retry_seconds};
  if (is_passing) {
    waiting_.push_front(id);
  } else {
    changes_->Change(
        id,
        [store = store_, id, why] {
          return store->SetJobState(id, JobState::kFailed, std::string(why.message()));
        },
        [this, id](const absl::Status& status) {
          // A failure that cannot be written stays known here; the next start finds it again.
          const bool is_over = absl::IsFailedPrecondition(status) || absl::IsNotFound(status);
          if (status.ok() || (is_over && !IsLogGone(status))) hooks_.on_ended(id);
        });
  }
  Took(id);
}

}  // namespace mycc
