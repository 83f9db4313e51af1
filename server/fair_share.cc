#include "server/fair_share.h"

#include <algorithm>
#include <cmath>

namespace mycc {
namespace {

constexpr double kHalfLifeSeconds = 300;
// A weight is a power of two of this at most, so that the sums stay exact enough.
constexpr double kMostHalfLives = 32;
constexpr double kAwaySeconds = 60;
constexpr uint64_t kTurnsALongestWait = 16;
// The last trial's share of the mean.
constexpr double kNewestShare = 0.2;
// A trial costs its lease in any case, however short it was.
constexpr double kLeastTrialSeconds = 0.01;
constexpr int kIdleClass = -kMostPriority - 1;

}  // namespace

int FairShare::ClassOf(const JobTerms& terms) { return terms.only_when_idle ? kIdleClass : terms.priority; }

double FairShare::Weight(double now) {
  if (now - origin_ > kMostHalfLives * kHalfLifeSeconds) {
    const double factor = std::exp2((origin_ - now) / kHalfLifeSeconds);
    for (auto& [name, job] : jobs_) TakeOut(name, job);
    for (auto& [name, job] : jobs_) job.used *= factor;
    for (auto& [name, owner] : owners_) owner.used *= factor;
    for (auto& [name, job] : jobs_) PutIn(name, job);
    std::erase_if(owners_, [](const auto& owner) {
      return owner.second.jobs.empty() && owner.second.used < kLeastTrialSeconds;
    });
    origin_ = now;
  }
  return std::exp2((now - origin_) / kHalfLifeSeconds);
}

FairShare::JobAccount& FairShare::JobOf(const std::string& job) {
  const auto [found, is_new] = jobs_.try_emplace(job);
  if (is_new) owners_[found->second.terms.owner].jobs.insert(job);
  return found->second;
}

void FairShare::TakeOut(const std::string& name, const JobAccount& job) {
  const auto found = owners_.find(job.terms.owner);
  Owner& owner = found->second;
  by_waiting_.erase({job.waiting_from, name});
  active_.erase({owner.used, found->first});
  for (const auto& [number, waiting] : owner.waiting) classes_[number].erase({owner.used, found->first});
  owner.active.erase({job.used, name});
  const auto waiting = owner.waiting.find(ClassOf(job.terms));
  if (waiting == owner.waiting.end()) return;
  waiting->second.erase({job.used, name});
  if (waiting->second.empty()) owner.waiting.erase(waiting);
}

void FairShare::PutIn(const std::string& name, const JobAccount& job) {
  const auto found = owners_.find(job.terms.owner);
  Owner& owner = found->second;
  if (job.is_active()) owner.active.insert({job.used, name});
  if (job.waits) owner.waiting[ClassOf(job.terms)].insert({job.used, name});
  if (job.waits && !job.terms.only_when_idle) by_waiting_.insert({job.waiting_from, name});
  PutIn(found->first, owner);
}

void FairShare::PutIn(const std::string& name, const Owner& owner) {
  if (!owner.active.empty()) active_.insert({owner.used, name});
  for (const auto& [number, waiting] : owner.waiting) classes_[number].insert({owner.used, name});
}

void FairShare::BeginLevel(Account* account, const Ordered& rivals, double now) {
  const bool was_here = account->is_known && now - account->idle_since < kAwaySeconds;
  account->is_known = true;
  if (!was_here && !rivals.empty()) account->used = std::max(account->used, rivals.begin()->first);
}

void FairShare::Change(const std::string& name, double now,
                       const std::function<void(JobAccount*, Owner*)>& change) {
  JobAccount& job = JobOf(name);
  Owner& owner = owners_[job.terms.owner];
  TakeOut(name, job);
  const bool job_was_active = job.is_active(), owner_was_active = !owner.active.empty() || job_was_active;
  change(&job, &owner);
  if (!job_was_active && job.is_active()) BeginLevel(&job, owner.active, now);
  if (job_was_active && !job.is_active()) job.idle_since = now;
  const bool owner_is_active = !owner.active.empty() || job.is_active();
  if (!owner_was_active && owner_is_active) BeginLevel(&owner, active_, now);
  if (owner_was_active && !owner_is_active) owner.idle_since = now;
  PutIn(name, job);
}

void FairShare::SetTerms(const std::string& job, const JobTerms& terms, double now) {
  if (JobOf(job).terms.owner != terms.owner) {
    Forget(job, now);
    jobs_[job].terms.owner = terms.owner;
    owners_[terms.owner].jobs.insert(job);
  }
  Change(job, now, [&](JobAccount* account, Owner*) { account->terms = terms; });
}

void FairShare::Forget(const std::string& job, double now) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return;
  Change(job, now, [](JobAccount* account, Owner*) {
    account->waits = false;
    account->under_way = 0;
  });
  TakeOut(job, found->second);
  const auto owner = owners_.find(found->second.terms.owner);
  owner->second.jobs.erase(job);
  PutIn(owner->first, owner->second);  // with its other jobs
  jobs_.erase(found);
}

void FairShare::SetWaiting(const std::string& job, bool waits, double now) {
  if (JobOf(job).waits == waits) return;
  Change(job, now, [&](JobAccount* account, Owner*) {
    account->waits = waits;
    account->waiting_from = turns_;
  });
}

bool FairShare::Offer(Which which, const std::string& pool,
                      const std::function<bool(const std::string& job)>& take) {
  const auto offer = [&](const std::string& job) {
    if (!take(job)) return false;
    ++turns_;
    ++turns_of_pool_[pool];
    JobAccount& taken = JobOf(job);
    TakeOut(job, taken);
    taken.waiting_from = turns_;
    PutIn(job, taken);
    return true;
  };
  // Copies, since an offer that is taken changes the orders.
  if (which == Which::kOrdinary && turns_of_pool_[pool] % kTurnsALongestWait == kTurnsALongestWait - 1) {
    for (auto at = by_waiting_.begin(); at != by_waiting_.end(); ++at) {
      const std::string job = at->second;
      if (offer(job)) return true;
    }
  }
  for (const auto& [number, owners] : classes_) {
    if ((number == kIdleClass) != (which == Which::kIdleOnly)) continue;
    for (const auto& [used, owner] : owners) {
      for (const auto& [job_used, job] : owners_.at(owner).waiting.at(number)) {
        const std::string offered = job;
        if (offer(offered)) return true;
      }
    }
  }
  return false;
}

double FairShare::Charge(const std::string& job, double now) {
  const double weight = Weight(now);
  double charged = 0;
  Change(job, now, [&](JobAccount* account, Owner* owner) {
    ++account->under_way;
    charged = account->mean_seconds;
    account->used += charged * weight;
    owner->used += charged * weight;
  });
  return charged;
}

void FairShare::Settle(const std::string& job, double charged, std::optional<double> spent, double now) {
  if (!jobs_.contains(job)) return;
  const double weight = Weight(now);
  const double cost = spent ? std::max(*spent, kLeastTrialSeconds) : 0;
  Change(job, now, [&](JobAccount* account, Owner* owner) {
    account->under_way = std::max(0, account->under_way - 1);
    if (spent) account->mean_seconds += kNewestShare * (cost - account->mean_seconds);
    account->used = std::max(0.0, account->used + (cost - charged) * weight);
    owner->used = std::max(0.0, owner->used + (cost - charged) * weight);
  });
}

}  // namespace mycc
