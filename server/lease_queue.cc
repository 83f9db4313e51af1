// Trials wait in lines, one for each job and target; leased trials are in indexes by name, holder and expiry.
#include "server/lease_queue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace mycc {
namespace {

constexpr double kFindAgainSeconds = 5;
// A worker that is well reports a batch of trials long before; one that hangs still names what it holds.
constexpr double kLongestSeconds = 1800;
constexpr double kElsewhereSeconds = 60;  // after this any worker may take it

// Work that another worker may build before it is measured.
bool IsBuildable(const QueuedWork& work) { return !work.is_round() && work.doubted_builder.empty(); }

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

void LeaseQueue::Add(QueuedWork work, bool first) {
  share_.SetWaiting(work.job, true, now_);
  LineOfWork& line = lines_[{work.job, work.target}];
  const bool is_apart = work.is_suspect() || !work.failed_tries.empty();
  std::deque<QueuedWork>& place = is_apart ? line.apart : work.built_by.empty() ? line.ordinary : line.built;
  if (listener_.on_waiting && &place == &line.ordinary && IsBuildable(work)) listener_.on_waiting(work);
  place.insert(first ? place.begin() : place.end(), std::move(work));
  apart_ += is_apart ? 1 : 0;
  ++waiting_;
  ++additions_;
}

void LeaseQueue::SeeTime(double now) { now_ = std::max(now_, now); }

Grant* LeaseQueue::Insert(Grant grant) {
  grant.charged = share_.Charge(grant.work.job, now_);
  const std::string name = grant.work.name;
  by_holder_[grant.holder].insert(name);
  by_job_[grant.work.job].insert(name);
  return &(leased_[name] = std::move(grant));
}

void LeaseQueue::Hold(Grant* grant, double now, double seconds) {
  SeeTime(now);
  StopClock(grant, LeaseState::kHeld);
  grant->renewed = now;
  grant->expires = std::min(now + seconds, grant->until);
  by_expiry_.insert({grant->expires, grant->work.name});
}

void LeaseQueue::HoldAnew(Grant* grant, double now, double seconds) {
  grant->until = now + kLongestSeconds;
  Hold(grant, now, seconds);
}

void LeaseQueue::StopClock(Grant* grant, LeaseState state) {
  if (grant->state == LeaseState::kHeld) by_expiry_.erase({grant->expires, grant->work.name});
  grant->state = state;
}

void LeaseQueue::Adopt(QueuedWork work, const std::string& holder, double now) {
  MYCC_CHECK(work.attempt > 0) << work.name << " was never granted";
  SeeTime(now);
  HoldAnew(Insert({.work = std::move(work), .holder = holder}), now, kFindAgainSeconds + lease_seconds_);
}

bool LeaseQueue::HoldsSuspect(const std::string& holder) const {
  const auto names = by_holder_.find(holder);
  return names != by_holder_.end() && std::ranges::any_of(names->second, [this](const std::string& name) {
           return leased_.at(name).work.is_suspect();
         });
}

bool LeaseQueue::ForLinesInTurn(const Asker& asker, FairShare::Which which, const TakeFrom& take) {
  return share_.Offer(which, asker.pool,
                      [&](const std::string& job) { return ForLinesOf(job, asker, take); });
}

bool LeaseQueue::ForLinesOf(const std::string& job, const Asker& asker, const TakeFrom& take) {
  std::vector<Lines::iterator> lines;
  const auto first = lines_.lower_bound({job, ""});
  for (auto line = first; line != lines_.end() && line->first.first == job; ++line) {
    if (asker.fits(job, line->first.second)) lines.push_back(line);
  }
  std::ranges::stable_sort(lines,
                           [](const auto& a, const auto& b) { return a->second.served < b->second.served; });
  for (const Lines::iterator& line : lines) {
    if (!take(&line->second)) continue;
    line->second.served = ++grants_;
    if (line->second.empty()) lines_.erase(line);
    if (waiting(job) == 0) share_.SetWaiting(job, false, now_);
    return true;
  }
  return false;
}

std::optional<QueuedWork> LeaseQueue::PopApart(const Asker& asker, bool suspects, LineOfWork* line) {
  const auto found = std::ranges::find_if(line->apart, [&](const QueuedWork& work) {
    return work.is_suspect() == suspects && (asker.may_try == nullptr || asker.may_try(work));
  });
  if (found == line->apart.end()) return std::nullopt;
  std::optional<QueuedWork> work = std::move(*found);
  line->apart.erase(found);
  --apart_;
  --waiting_;
  return work;
}

std::optional<QueuedWork> LeaseQueue::TakeOrdinary(const Asker& asker, LineOfWork* line) {
  std::optional<QueuedWork> work = PopApart(asker, /*suspects=*/false, line);
  if (work) return work;
  std::deque<QueuedWork>& from = line->built.empty() ? line->ordinary : line->built;
  const auto found = std::ranges::find_if(from, [&](const QueuedWork& waiting) {
    return !waiting.built_by.empty() || !IsBuildable(waiting) || asker.may_build == nullptr ||
           asker.may_build(waiting);
  });
  if (found == from.end()) return std::nullopt;
  work = std::move(*found);
  from.erase(found);
  --waiting_;
  if (listener_.on_gone && &from == &line->ordinary && IsBuildable(*work)) listener_.on_gone(*work);
  return work;
}

std::optional<QueuedWork> LeaseQueue::TakeUnbuilt(const Line& line, const std::string& name) {
  const auto of_line = lines_.find(line);
  if (of_line == lines_.end()) return std::nullopt;
  std::deque<QueuedWork>& ordinary = of_line->second.ordinary;
  const auto found =
      std::ranges::find_if(ordinary, [&name](const QueuedWork& waiting) { return waiting.name == name; });
  if (found == ordinary.end()) return std::nullopt;
  std::optional<QueuedWork> work = std::move(*found);
  ordinary.erase(found);
  if (of_line->second.empty()) lines_.erase(of_line);
  if (waiting(line.first) == 0) share_.SetWaiting(line.first, false, now_);
  --waiting_;
  return work;
}

bool LeaseQueue::SetBuilt(const std::string& job, const std::string& target, const std::string& name,
                          const std::string& worker) {
  std::optional<QueuedWork> work = TakeUnbuilt({job, target}, name);
  if (!work) return false;
  work->built_by = worker;
  Add(*std::move(work));
  return true;
}

std::optional<Grant> LeaseQueue::LeaseUnbuilt(const Asker& asker, const std::string& job,
                                              const std::string& target, const std::string& name) {
  std::optional<QueuedWork> work = TakeUnbuilt({job, target}, name);
  if (!work) return std::nullopt;
  return *GrantTo(asker, *std::move(work));
}

void LeaseQueue::DoubtBuild(const std::string& name, uint32_t attempt) {
  Grant* const grant = FindLease(name, attempt);
  if (grant == nullptr) return;
  grant->work.doubted_builder = std::exchange(grant->work.built_by, "");
}

Grant* LeaseQueue::GrantTo(const Asker& asker, QueuedWork work) {
  ++work.attempt;
  return Insert({.work = std::move(work), .holder = asker.holder, .device = asker.device});
}

int LeaseQueue::HeldOn(const Asker& asker) const {
  const auto names = by_holder_.find(asker.holder);
  if (names == by_holder_.end()) return 0;
  return static_cast<int>(std::ranges::count_if(
      names->second, [&](const std::string& name) { return leased_.at(name).device == asker.device; }));
}

std::vector<Grant> LeaseQueue::Lease(const Asker& asker, int count) {
  SeeTime(asker.now);
  std::vector<Grant> grants = LeaseOf(asker, FairShare::Which::kOrdinary, count);
  if (!grants.empty() || waiting_ == 0) return grants;
  return LeaseOf(asker, FairShare::Which::kIdleOnly, std::min(count, asker.most_idle - HeldOn(asker)));
}

std::vector<Grant> LeaseQueue::LeaseOf(const Asker& asker, FairShare::Which which, int count) {
  std::vector<Grant> grants;
  int built = 0;
  const auto take_suspect = [&](LineOfWork* line) {
    std::optional<QueuedWork> work = PopApart(asker, /*suspects=*/true, line);
    if (!work) return false;
    grants.push_back(*GrantTo(asker, *std::move(work)));
    return true;
  };
  const auto take_ordinary = [&](LineOfWork* line) {
    if (built >= asker.most_built && line->apart.empty() && !line->built.empty()) return false;
    std::optional<QueuedWork> work = TakeOrdinary(asker, line);
    if (!work) return false;
    built += work->built_by.empty() ? 0 : 1;
    grants.push_back(*GrantTo(asker, *std::move(work)));
    return true;
  };
  const bool may_have_suspect = count > 0 && apart_ > 0 && !HoldsSuspect(asker.holder);
  if (may_have_suspect && ForLinesInTurn(asker, which, take_suspect)) return grants;
  while (static_cast<int>(grants.size()) < count && ForLinesInTurn(asker, which, take_ordinary)) {
  }
  return grants;
}

bool LeaseQueue::Confirm(const std::string& name, uint32_t attempt, double now) {
  Grant* const grant = FindLease(name, attempt);
  if (grant == nullptr) return false;
  HoldAnew(grant, now, lease_seconds_);
  return true;
}

void LeaseQueue::TakeBack(const std::string& name, uint32_t attempt) {
  std::optional<Grant> taken = Take(name, attempt);
  if (!taken) return;
  --taken->work.attempt;
  Add(std::move(taken->work), /*first=*/true);
}

bool LeaseQueue::Renew(const std::string& name, uint32_t attempt, const std::string& holder, double now) {
  Grant* const grant = FindLease(name, attempt);
  if (grant == nullptr || grant->holder != holder) return false;
  if (grant->state == LeaseState::kHeld) Hold(grant, now, lease_seconds_);
  return true;
}

void LeaseQueue::RenewAll(const std::string& holder, double now) {
  const auto names = by_holder_.find(holder);
  if (names == by_holder_.end()) return;
  for (const std::string& name : names->second) {
    Grant& grant = leased_.at(name);
    if (grant.state == LeaseState::kHeld) Hold(&grant, now, lease_seconds_);
  }
}

bool LeaseQueue::Rebind(const std::string& name, uint32_t attempt, const std::string& holder, double now) {
  Grant* const grant = FindLease(name, attempt);
  if (grant == nullptr || grant->state != LeaseState::kHeld) return false;
  Forget(&by_holder_, grant->holder, name);
  by_holder_[holder].insert(name);
  grant->holder = holder;
  Hold(grant, now, lease_seconds_);
  return true;
}

std::optional<Grant> LeaseQueue::Take(const std::string& name, uint32_t attempt,
                                      std::optional<double> seconds) {
  Grant* const found = FindLease(name, attempt);
  if (found == nullptr) return std::nullopt;
  StopClock(found, LeaseState::kCommitting);
  Forget(&by_holder_, found->holder, name);
  Forget(&by_job_, found->work.job, name);
  Grant grant = std::move(*found);
  leased_.erase(name);
  share_.Settle(grant.work.job, grant.charged, seconds, now_);
  return grant;
}

Grant* LeaseQueue::FindLease(const std::string& name, uint32_t attempt) {
  const auto found = leased_.find(name);
  return found == leased_.end() || found->second.work.attempt != attempt ? nullptr : &found->second;
}

const Grant* LeaseQueue::Find(const std::string& name, uint32_t attempt) const {
  const auto found = leased_.find(name);
  return found == leased_.end() || found->second.work.attempt != attempt ? nullptr : &found->second;
}

bool LeaseQueue::BeginCommit(const std::string& name, uint32_t attempt) {
  Grant* const grant = FindLease(name, attempt);
  if (grant == nullptr || grant->state != LeaseState::kHeld) return false;
  StopClock(grant, LeaseState::kCommitting);
  return true;
}

void LeaseQueue::AbortCommit(const std::string& name, uint32_t attempt, double now) {
  Grant* const grant = FindLease(name, attempt);
  if (grant != nullptr && grant->state == LeaseState::kCommitting) HoldAnew(grant, now, lease_seconds_);
}

bool LeaseQueue::Finish(const std::string& name, uint32_t attempt, double seconds) {
  return Take(name, attempt, seconds).has_value();
}

bool LeaseQueue::Return(const std::string& name, uint32_t attempt, bool blamed) {
  std::optional<Grant> grant = Take(name, attempt);
  if (!grant) return false;
  if (blamed) ++grant->work.losses;
  Add(std::move(grant->work), /*first=*/true);  // its generation is older than what waits
  return true;
}

bool LeaseQueue::ReturnElsewhere(const std::string& name, uint32_t attempt, bool blamed, FailedTry failed,
                                 double now) {
  Grant* const grant = FindLease(name, attempt);
  if (grant == nullptr) return false;
  grant->work.failed_tries.push_back(std::move(failed));
  grant->work.elsewhere_until = now + kElsewhereSeconds;
  return Return(name, attempt, blamed);
}

// `names` is sorted: the order of grants must not depend on a hash table.
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

std::optional<QueuedWork> LeaseQueue::Withdraw(const std::string& job, const std::string& target,
                                               const std::string& name) {
  const auto line = lines_.find({job, target});
  if (line == lines_.end()) return std::nullopt;
  for (std::deque<QueuedWork>* const place :
       {&line->second.ordinary, &line->second.built, &line->second.apart}) {
    const auto found =
        std::ranges::find_if(*place, [&name](const QueuedWork& work) { return work.name == name; });
    if (found == place->end()) continue;
    std::optional<QueuedWork> work = std::move(*found);
    apart_ -= place == &line->second.apart ? 1 : 0;
    --waiting_;
    place->erase(found);
    const bool was_unbuilt = place == &line->second.ordinary && IsBuildable(*work);
    if (line->second.empty()) lines_.erase(line);
    if (waiting(job) == 0) share_.SetWaiting(job, false, now_);
    if (was_unbuilt && listener_.on_gone) listener_.on_gone(*work);
    return work;
  }
  return std::nullopt;
}

void LeaseQueue::DropWaiting(const std::string& job) {
  std::erase_if(lines_, [&](const auto& line) {
    if (line.first.first != job) return false;
    for (const QueuedWork& work : line.second.ordinary) {
      if (listener_.on_gone && IsBuildable(work)) listener_.on_gone(work);
    }
    waiting_ -= line.second.size();
    apart_ -= static_cast<int64_t>(line.second.apart.size());
    return true;
  });
  share_.SetWaiting(job, false, now_);
}

void LeaseQueue::Drop(const std::string& name) {
  const auto found = leased_.find(name);
  if (found != leased_.end()) Take(name, found->second.work.attempt);
}

void LeaseQueue::DropJob(const std::string& job) {
  DropWaiting(job);
  if (const auto names = by_job_.find(job); names != by_job_.end()) {
    for (const std::string& name : Names(names->second)) Drop(name);
  }
  share_.Forget(job, now_);
}

}  // namespace mycc
