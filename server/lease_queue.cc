#include "server/lease_queue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace mycc {
namespace {

constexpr double kFindAgainSeconds = 5;

}  // namespace

int64_t LeaseQueue::CountOf(const Index& index, const std::string& key) {
  const auto found = index.find(key);
  return found == index.end() ? 0 : static_cast<int64_t>(found->second.size());
}

void LeaseQueue::Forget(Index* index, const std::string& key, const std::string& name) {
  const auto found = index->find(key);
  if (found == index->end()) return;
  found->second.erase(name);
  if (found->second.empty()) index->erase(found);
}

void LeaseQueue::Add(QueuedTrial trial, bool first) {
  std::deque<QueuedTrial>& line = lines_[{trial.job, trial.target}];
  if (first) {
    line.push_front(std::move(trial));
  } else {
    line.push_back(std::move(trial));
  }
  ++waiting_;
  ++additions_;
}

Grant* LeaseQueue::Insert(Grant grant) {
  const std::string name = grant.trial.name;
  by_holder_[grant.holder].insert(name);
  by_job_[grant.trial.job].insert(name);
  return &(leased_[name] = std::move(grant));
}

void LeaseQueue::Hold(Grant* grant, double expires) {
  StopClock(grant, LeaseState::kHeld);
  grant->expires = expires;
  by_expiry_.insert({expires, grant->trial.name});
}

void LeaseQueue::StopClock(Grant* grant, LeaseState state) {
  if (grant->state == LeaseState::kHeld) by_expiry_.erase({grant->expires, grant->trial.name});
  grant->state = state;
}

void LeaseQueue::Adopt(QueuedTrial trial, const std::string& holder, double now) {
  MYCC_CHECK(trial.attempt > 0) << trial.name << " was never granted";
  Hold(Insert({std::move(trial), holder}), now + kFindAgainSeconds + lease_seconds_);
}

std::vector<Grant> LeaseQueue::Lease(const std::string& holder, int count, const Fits& fits) {
  std::vector<Grant> grants;
  int64_t held = 0;
  if (const auto names = by_holder_.find(holder); names != by_holder_.end()) {
    for (const std::string& name : names->second) {
      if (leased_.at(name).trial.losses > 0) return grants;
    }
    held = static_cast<int64_t>(names->second.size());
  }
  // One pass over the lines takes at most one trial of each; passes repeat until nothing was taken.
  bool taken = true;
  while (taken && static_cast<int>(grants.size()) < count && !lines_.empty()) {
    taken = false;
    const size_t lines = lines_.size();
    for (size_t turn = 0; turn < lines && static_cast<int>(grants.size()) < count && !lines_.empty();
         ++turn) {
      auto line = lines_.upper_bound(last_line_);
      if (line == lines_.end()) line = lines_.begin();
      last_line_ = line->first;
      if (!fits(line->first.first, line->first.second)) continue;
      const bool suspect = line->second.front().losses > 0;
      if (suspect && held + static_cast<int64_t>(grants.size()) > 0) continue;
      Grant grant{std::move(line->second.front()), holder};
      line->second.pop_front();
      if (line->second.empty()) lines_.erase(line);
      --waiting_;
      ++grant.trial.attempt;
      grants.push_back(*Insert(std::move(grant)));
      if (suspect) return grants;
      taken = true;
    }
  }
  return grants;
}

bool LeaseQueue::Confirm(const std::string& name, uint32_t attempt, double now) {
  Grant* const grant = FindLease(name, attempt);
  if (grant == nullptr) return false;
  Hold(grant, now + lease_seconds_);
  return true;
}

void LeaseQueue::TakeBack(const std::string& name, uint32_t attempt) {
  std::optional<Grant> taken = Take(name, attempt);
  if (!taken) return;
  --taken->trial.attempt;
  Add(std::move(taken->trial), /*first=*/true);
}

void LeaseQueue::RenewAll(const std::string& holder, double now) {
  const auto names = by_holder_.find(holder);
  if (names == by_holder_.end()) return;
  for (const std::string& name : names->second) {
    Grant& grant = leased_.at(name);
    if (grant.state == LeaseState::kHeld) Hold(&grant, now + lease_seconds_);
  }
}

bool LeaseQueue::Rebind(const std::string& name, uint32_t attempt, const std::string& holder, double now) {
  Grant* const grant = FindLease(name, attempt);
  if (grant == nullptr || grant->state != LeaseState::kHeld) return false;
  Forget(&by_holder_, grant->holder, name);
  by_holder_[holder].insert(name);
  grant->holder = holder;
  Hold(grant, now + lease_seconds_);
  return true;
}

std::optional<Grant> LeaseQueue::Take(const std::string& name, uint32_t attempt) {
  Grant* const found = FindLease(name, attempt);
  if (found == nullptr) return std::nullopt;
  StopClock(found, LeaseState::kSettling);
  Forget(&by_holder_, found->holder, name);
  Forget(&by_job_, found->trial.job, name);
  Grant grant = std::move(*found);
  leased_.erase(name);
  return grant;
}

Grant* LeaseQueue::FindLease(const std::string& name, uint32_t attempt) {
  const auto found = leased_.find(name);
  return found == leased_.end() || found->second.trial.attempt != attempt ? nullptr : &found->second;
}

const Grant* LeaseQueue::Find(const std::string& name, uint32_t attempt) const {
  const auto found = leased_.find(name);
  return found == leased_.end() || found->second.trial.attempt != attempt ? nullptr : &found->second;
}

bool LeaseQueue::Settle(const std::string& name, uint32_t attempt) {
  Grant* const grant = FindLease(name, attempt);
  if (grant == nullptr || grant->state != LeaseState::kHeld) return false;
  StopClock(grant, LeaseState::kSettling);
  return true;
}

void LeaseQueue::Unsettle(const std::string& name, uint32_t attempt, double now) {
  Grant* const grant = FindLease(name, attempt);
  if (grant != nullptr && grant->state == LeaseState::kSettling) Hold(grant, now + lease_seconds_);
}

bool LeaseQueue::Finish(const std::string& name, uint32_t attempt) { return Take(name, attempt).has_value(); }

bool LeaseQueue::Return(const std::string& name, uint32_t attempt, bool blamed) {
  std::optional<Grant> grant = Take(name, attempt);
  if (!grant) return false;
  if (blamed) ++grant->trial.losses;
  Add(std::move(grant->trial), /*first=*/true);  // its generation is older than what waits
  return true;
}

// What happens must not depend on a hash table: `names` is sorted.
std::vector<Grant> LeaseQueue::HeldAmong(const Names& names) const {
  std::vector<Grant> grants;
  for (const std::string& name : names) {
    const Grant& grant = leased_.at(name);
    if (grant.state == LeaseState::kHeld) grants.push_back(grant);
  }
  return grants;
}

std::vector<Grant> LeaseQueue::HeldBy(const std::string& holder) const {
  const auto names = by_holder_.find(holder);
  return names == by_holder_.end() ? std::vector<Grant>() : HeldAmong(names->second);
}

std::vector<Grant> LeaseQueue::HeldOf(const std::string& job) const {
  const auto names = by_job_.find(job);
  return names == by_job_.end() ? std::vector<Grant>() : HeldAmong(names->second);
}

std::vector<Grant> LeaseQueue::Overdue(double now) const {
  Names names;
  for (const auto& [expires, name] : by_expiry_) {
    if (expires > now) break;
    names.insert(name);
  }
  return HeldAmong(names);
}

void LeaseQueue::DropWaiting(const std::string& job) {
  std::erase_if(lines_, [&](const auto& line) {
    if (line.first.first != job) return false;
    waiting_ -= static_cast<int64_t>(line.second.size());
    return true;
  });
}

void LeaseQueue::DropJob(const std::string& job) {
  DropWaiting(job);
  const auto names = by_job_.find(job);
  if (names == by_job_.end()) return;
  for (const std::string& name : Names(names->second)) Take(name, leased_.at(name).trial.attempt);
}

int64_t LeaseQueue::waiting(const std::string& job) const {
  int64_t trials = 0;
  for (auto line = lines_.lower_bound({job, ""}); line != lines_.end() && line->first.first == job; ++line)
    trials += static_cast<int64_t>(line->second.size());
  return trials;
}

}  // namespace mycc
