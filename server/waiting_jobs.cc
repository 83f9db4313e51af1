#include "server/waiting_jobs.h"

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace mycc {

WaitingJobs::WaitingJobs(WaitingJobsOptions options, JobStore* store, const TimeSource* time,
                         const Owners* owners, Executors executors, JobChanges* changes, RunningJobs* running,
                         JobProposals* proposals, WaitingJobsHooks hooks)
    : options_(options),
      store_(store),
      time_(time),
      executors_(std::move(executors)),
      changes_(changes),
      running_(running),
      proposals_(proposals),
      hooks_(std::move(hooks)),
      owners_(owners) {}

std::deque<WaitingJobs::Waiting>::iterator WaitingJobs::FindWaiting(const std::string& job) {
  return std::ranges::find_if(waiting_, [&](const Waiting& one) { return one.id == job; });
}

bool WaitingJobs::Contains(const std::string& job) const {
  return taking_up_.contains(job) || TermsOfWaiting(job) != nullptr;
}

const JobTerms* WaitingJobs::TermsOfWaiting(const std::string& job) const {
  const auto found = std::ranges::find_if(waiting_, [&](const Waiting& one) { return one.id == job; });
  return found == waiting_.end() ? nullptr : &found->terms;
}

void WaitingJobs::SetTerms(const std::string& job, const JobTerms& terms) {
  if (const auto found = FindWaiting(job); found != waiting_.end()) found->terms = terms;
}

const JobTrouble* WaitingJobs::TroubleOf(const std::string& job) const {
  const auto found = troubles_.find(job);
  return found == troubles_.end() ? nullptr : &found->second;
}

void WaitingJobs::Enqueue(const std::string& job, const JobTerms& terms) {
  Append(job, terms);
  StartWaiting();
}

void WaitingJobs::Append(const std::string& job, const JobTerms& terms) {
  if (!Contains(job) && TroubleOf(job) == nullptr) waiting_.push_back({job, terms});
}

void WaitingJobs::Forget(const std::string& job) {
  std::erase_if(waiting_, [&](const Waiting& one) { return one.id == job; });
  troubles_.erase(job);
  Took(job);
}

void WaitingJobs::OnLogGone(const absl::Status& why) {
  std::vector<std::string> ids;
  for (const Waiting& one : std::exchange(waiting_, {})) ids.push_back(one.id);
  for (const auto& [id, taking_up] : taking_up_) ids.push_back(id);
  for (const std::string& id : ids) troubles_[id] = {why, /*is_passing=*/false};
  for (const std::string& id : ids) Took(id);
}

void WaitingJobs::AddOwners(std::set<std::string>* owners) const {
  for (const Waiting& one : waiting_) owners->insert(one.terms.owner);
}

uint32_t WaitingJobs::num_waiting(const std::string& owner) const {
  return static_cast<uint32_t>(
      std::ranges::count_if(waiting_, [&](const Waiting& one) { return one.terms.owner == owner; }));
}

std::map<std::string, uint32_t> WaitingJobs::RunningByOwner() const {
  std::map<std::string, uint32_t> running;
  for (const auto& [id, job] : *running_) ++running[job->terms.owner];
  for (const auto& [id, taking_up] : taking_up_) ++running[taking_up.terms.owner];
  return running;
}

uint32_t WaitingJobs::num_running(const std::string& owner) const {
  const std::map<std::string, uint32_t> running = RunningByOwner();
  const auto found = running.find(owner);
  return found == running.end() ? 0 : found->second;
}

size_t WaitingJobs::Room() const {
  const size_t most = static_cast<size_t>(options_.max_running);
  return most - std::min(most, running_->size() + taking_up_.size());
}

bool WaitingJobs::HasRoomFor(const std::string& owner) const {
  const v1::Quota& quota = owners_->QuotaOf(owner);
  const bool is_within = !quota.has_running_jobs() || num_running(owner) < quota.running_jobs();
  return is_within && waiting_.size() < Room();
}

std::string WaitingJobs::WhyWaiting(const std::string& job) const {
  const JobTerms* const terms = TermsOfWaiting(job);
  const v1::Quota& quota = owners_->QuotaOf(terms == nullptr ? "" : terms->owner);
  if (terms == nullptr || !quota.has_running_jobs()) return "waiting for its turn";
  const uint32_t running = num_running(terms->owner);
  if (running < quota.running_jobs()) return "waiting for its turn";
  return absl::StrCat("waiting for its turn, until one of the ", running, " running jobs of ", terms->owner,
                      " ends: the quota running_jobs is ", quota.running_jobs());
}

void WaitingJobs::AfterTakingUp(const std::string& job, std::function<void()> call) {
  taking_up_.at(job).afterwards.push_back(std::move(call));
}

bool WaitingJobs::IsOn(const std::string& id, uint64_t number) const {
  const auto found = taking_up_.find(id);
  return found != taking_up_.end() && found->second.number == number;
}

bool WaitingJobs::IsOver(const JobTerms& terms) const {
  return terms.deadline_unix_micros > 0 && owners_->clock().UnixMicros() >= terms.deadline_unix_micros;
}

int WaitingJobs::Next(const std::map<std::string, uint32_t>& running) const {
  const double now = time_->Seconds();
  const bool has_room = Room() > 0;
  const auto of_owner = [&](const JobTerms& terms) {
    const auto found = running.find(terms.owner);
    return found == running.end() ? 0u : found->second;
  };
  const auto rank = [&](const JobTerms& terms) {  // the smallest is the next one
    return std::make_tuple(!IsOver(terms), terms.only_when_idle, -terms.priority, of_owner(terms));
  };
  int next = -1;
  for (int i = 0; i < static_cast<int>(waiting_.size()); ++i) {
    const JobTerms& terms = waiting_[i].terms;
    const JobTrouble* const trouble = TroubleOf(waiting_[i].id);
    const v1::Quota& quota = owners_->QuotaOf(terms.owner);
    const bool is_within = !quota.has_running_jobs() || of_owner(terms) < quota.running_jobs();
    if (!IsOver(terms) && !(has_room && is_within)) continue;
    if (trouble != nullptr && now < trouble->retry_at) continue;
    if (next < 0 || rank(terms) < rank(waiting_[next].terms)) next = i;
  }
  return next;
}

void WaitingJobs::StartWaiting() {
  if (waiting_.empty()) return;
  std::map<std::string, uint32_t> running = RunningByOwner();
  std::vector<std::string> begin;
  for (int next = Next(running); next >= 0; next = Next(running)) {
    const Waiting one = waiting_[next];
    waiting_.erase(waiting_.begin() + next);
    ++running[one.terms.owner];
    taking_up_[one.id] = {.number = ++taken_up_, .terms = one.terms, .afterwards = {}};
    begin.push_back(one.id);
  }
  for (const std::string& id : begin) {
    if (const auto taken = taking_up_.find(id); taken != taking_up_.end()) TakeUp(id, taken->second.number);
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
    Share(id, number, *std::move(found->loaded));
  }
}

void WaitingJobs::Share(const std::string& id, uint64_t number, LoadedJob loaded) {
  TaskSpecs shared = hooks_.share(loaded.ledger.get());
  if (shared.empty()) return Run(id, std::move(loaded));
  const auto waiting = std::make_shared<LoadedJob>(std::move(loaded));
  executors_.write(
      [store = store_, id, shared = std::move(shared)] { return WriteTaskSpecs(store, id, shared, ""); },
      [this, id, number, waiting](const absl::Status& status) {
        if (!IsOn(id, number)) return;  // cancelled meanwhile
        if (!status.ok()) return KeepTrouble(id, status);
        Run(id, std::move(*waiting));
      });
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
    waiting_.push_front({id, taking_up_.at(id).terms});
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
