#include "server/lease_queue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace mycc {
namespace {

constexpr double kFindAgainSeconds = 5;

}  // namespace

void LeaseQueue::Add(QueuedTrial trial, bool first) {
  std::deque<QueuedTrial>& line = lines_[{trial.job, trial.target}];
  if (first) {
    line.push_front(std::move(trial));
  } else {
    line.push_back(std::move(trial));
  }
  ++waiting_;
}

void LeaseQueue::Adopt(QueuedTrial trial, const std::string& holder, double now) {
  MYCC_CHECK(trial.attempt > 0) << trial.name << " was never granted";
  const std::string name = trial.name;
  leased_[name] = Grant{std::move(trial), holder, now + kFindAgainSeconds + lease_seconds_};
}

std::vector<Grant> LeaseQueue::Lease(const std::string& holder, int count, double now, const Fits& fits) {
  std::vector<Grant> grants;
  int64_t held = 0;
  for (const auto& [name, grant] : leased_) {
    if (grant.holder != holder) continue;
    if (grant.trial.losses > 0) return grants;
    ++held;
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
      Grant grant{std::move(line->second.front()), holder, now + lease_seconds_};
      line->second.pop_front();
      if (line->second.empty()) lines_.erase(line);
      --waiting_;
      ++grant.trial.attempt;
      leased_[grant.trial.name] = grant;
      grants.push_back(std::move(grant));
      if (suspect) return grants;
      taken = true;
    }
  }
  return grants;
}

void LeaseQueue::Renew(const std::string& holder, double now) {
  for (auto& [name, grant] : leased_) {
    if (grant.holder == holder) grant.expires = now + lease_seconds_;
  }
}

bool LeaseQueue::Rebind(const std::string& name, uint32_t attempt, const std::string& holder, double now) {
  const auto found = leased_.find(name);
  if (found == leased_.end() || found->second.trial.attempt != attempt) return false;
  found->second.holder = holder;
  found->second.expires = now + lease_seconds_;
  return true;
}

std::optional<Grant> LeaseQueue::Take(const std::string& name, uint32_t attempt) {
  const auto found = leased_.find(name);
  if (found == leased_.end() || found->second.trial.attempt != attempt) return std::nullopt;
  Grant grant = std::move(found->second);
  leased_.erase(found);
  return grant;
}

const Grant* LeaseQueue::Find(const std::string& name, uint32_t attempt) const {
  const auto found = leased_.find(name);
  return found == leased_.end() || found->second.trial.attempt != attempt ? nullptr : &found->second;
}

bool LeaseQueue::Finish(const std::string& name, uint32_t attempt) { return Take(name, attempt).has_value(); }

bool LeaseQueue::Return(const std::string& name, uint32_t attempt, bool blamed) {
  std::optional<Grant> grant = Take(name, attempt);
  if (!grant) return false;
  if (blamed) ++grant->trial.losses;
  Add(std::move(grant->trial), /*first=*/true);  // its generation is older than what waits
  return true;
}

void LeaseQueue::TakeBack(const Grant& grant) {
  std::optional<Grant> taken = Take(grant.trial.name, grant.trial.attempt);
  MYCC_CHECK(taken) << grant.trial.name << " is not leased";
  --taken->trial.attempt;
  Add(std::move(taken->trial), /*first=*/true);
}

std::vector<Grant> LeaseQueue::Matching(const std::function<bool(const Grant&)>& matches) const {
  std::vector<Grant> grants;
  for (const auto& [name, grant] : leased_) {
    if (matches(grant)) grants.push_back(grant);
  }
  // What happens must not depend on a hash table.
  std::sort(grants.begin(), grants.end(),
            [](const Grant& a, const Grant& b) { return a.trial.name < b.trial.name; });
  return grants;
}

std::vector<Grant> LeaseQueue::HeldBy(const std::string& holder) const {
  return Matching([&holder](const Grant& grant) { return grant.holder == holder; });
}

std::vector<Grant> LeaseQueue::Overdue(double now) const {
  return Matching([now](const Grant& grant) { return grant.expires <= now; });
}

std::vector<Grant> LeaseQueue::LeasedOf(const std::string& job) const {
  return Matching([&job](const Grant& grant) { return grant.trial.job == job; });
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
  for (const Grant& grant : LeasedOf(job)) leased_.erase(grant.trial.name);
}

int64_t LeaseQueue::waiting(const std::string& job) const {
  int64_t trials = 0;
  for (const auto& [line, waiting] : lines_)
    trials += line.first == job ? static_cast<int64_t>(waiting.size()) : 0;
  return trials;
}

int64_t LeaseQueue::leased_by(const std::string& holder) const {
  return std::count_if(leased_.begin(), leased_.end(),
                       [&holder](const auto& entry) { return entry.second.holder == holder; });
}

}  // namespace mycc
