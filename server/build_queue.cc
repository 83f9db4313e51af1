#include "server/build_queue.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace mycc {
namespace {

constexpr char kOrderPrefix[] = "build ";
constexpr char kGpuTarget[] = "v1 cuda";  // how a GPU's target begins
constexpr uint32_t kMostBuildAttempts = 3;

}  // namespace

BuildQueue::BuildQueue(double lease_seconds, LeaseQueue* trials, WorkerTable* workers)
    : trials_(trials), workers_(workers), orders_(lease_seconds) {
  trials_->Listen({[this](const QueuedWork& trial) { OnWaiting(trial); },
                   [this](const QueuedWork& trial) { OnGone(trial); },
                   [this](const std::string& job, const JobTerms& terms) { orders_.SetTerms(job, terms); }});
}

std::string BuildQueue::OrderOf(const std::string& trial) { return kOrderPrefix + trial; }

std::string BuildQueue::TrialOf(const std::string& order) {
  absl::string_view trial = order;
  return absl::ConsumePrefix(&trial, kOrderPrefix) ? std::string(trial) : "";
}

void BuildQueue::OnWaiting(const QueuedWork& trial) {
  if (!absl::StartsWith(trial.target, kGpuTarget) || orders_.is_leased(OrderOf(trial.name))) return;
  orders_.Add({.name = OrderOf(trial.name),
               .job = trial.job,
               .target = trial.target,
               .task = trial.task,
               .what = trial.what});
}

void BuildQueue::OnGone(const QueuedWork& trial) {
  given_up_.erase(trial.name);
  const std::string order = OrderOf(trial.name);
  // A builder that is at it hears at its next word that the order is revoked. Were it returned later, a trial
  // that came back meanwhile would have two orders of one name.
  if (!orders_.Withdraw(trial.job, trial.target, order)) orders_.Drop(order);
}

std::function<bool(const QueuedWork&)> BuildQueue::MayBuild(const WorkerTable::Session& session,
                                                            double now) const {
  const bool waits = session.role == v1::WORKER_ROLE_MEASURE;
  auto has_builder = std::make_shared<std::map<std::string, bool>>();  // by target, as it is asked for
  return [this, waits, now, has_builder](const QueuedWork& trial) {
    if (!absl::StartsWith(trial.target, kGpuTarget)) return true;
    if (orders_.is_leased(OrderOf(trial.name))) return false;
    if (!waits || given_up_.contains(trial.name)) return true;
    const auto [known, is_new] = has_builder->try_emplace(trial.target, false);
    if (is_new) known->second = workers_->HasBuilder(trial.target, {}, now);
    return !known->second;
  };
}

bool BuildQueue::MayTry(const std::string& worker, const QueuedWork& order, double now) const {
  std::vector<std::string> failed_on;
  for (const FailedTry& failed : order.failed_tries) failed_on.push_back(failed.worker);
  return now >= order.elsewhere_until || std::ranges::count(failed_on, worker) == 0 ||
         !workers_->HasBuilder(order.target, failed_on, now);
}

std::vector<Grant> BuildQueue::Lease(const WorkerTable::Session& session, int count,
                                     const std::function<bool(const std::string&)>& is_leasable, double now) {
  // A builder of any number of orders is free again after one build's time.
  Asker asker{.holder = session.id, .device = "", .now = now, .most_idle = std::numeric_limits<int>::max()};
  asker.fits = [&](const std::string& job, const std::string& target) {
    return is_leasable(job) && session.BuildsFor(target);
  };
  asker.may_try = [&](const QueuedWork& order) { return MayTry(session.worker, order, now); };
  std::vector<Grant> grants = orders_.Lease(asker, count);
  for (const Grant& grant : grants) orders_.Confirm(grant.work.name, grant.work.attempt, now);
  return grants;
}

std::optional<Grant> BuildQueue::LeaseAgain(const WorkerTable::Session& session, const std::string& job,
                                            const std::string& target, const std::string& trial, double now) {
  const std::optional<Grant> grant =
      orders_.LeaseUnbuilt({.holder = session.id, .device = ""}, job, target, OrderOf(trial));
  if (grant) orders_.Confirm(grant->work.name, grant->work.attempt, now);
  return grant;
}

const Grant* BuildQueue::Find(const v1::LeaseId& lease) const {
  return orders_.Find(lease.trial(), lease.attempt());
}

bool BuildQueue::Renew(const v1::LeaseId& lease, const std::string& session, double now) {
  return orders_.Renew(lease.trial(), lease.attempt(), session, now);
}

bool BuildQueue::Rebind(const v1::LeaseId& lease, const std::string& session, double now) {
  return orders_.Rebind(lease.trial(), lease.attempt(), session, now);
}

bool BuildQueue::BeginEnd(const Grant& order) {
  return orders_.BeginCommit(order.work.name, order.work.attempt);
}

void BuildQueue::AbortEnd(const Grant& order, double now) {
  orders_.AbortCommit(order.work.name, order.work.attempt, now);
}

void BuildQueue::Built(const Grant& order, const std::string& worker) {
  if (orders_.Finish(order.work.name, order.work.attempt))
    trials_->SetBuilt(order.work.job, order.work.target, TrialOf(order.work.name), worker);
}

void BuildQueue::Drop(const Grant& order) { orders_.Finish(order.work.name, order.work.attempt); }

void BuildQueue::Return(const Grant& order) {
  orders_.Return(order.work.name, order.work.attempt, /*blamed=*/false);
}

void BuildQueue::GiveUp(const Grant& order) {
  if (orders_.Finish(order.work.name, order.work.attempt)) given_up_.insert(TrialOf(order.work.name));
}

void BuildQueue::ReturnElsewhere(const Grant& order, bool lost, FailedTry failed, double now) {
  if (order.work.attempt >= kMostBuildAttempts) {
    GiveUp(order);
  } else {
    orders_.ReturnElsewhere(order.work.name, order.work.attempt, lost, std::move(failed), now);
  }
}

// Each goes back to the head of its line: the last first, so that they stand there as before.
void BuildQueue::ReturnAllOf(const std::string& session) {
  std::vector<Grant> held = orders_.HeldBy(session);
  std::ranges::reverse(held);
  for (const Grant& order : held) Return(order);
}

void BuildQueue::LoseAllOf(const WorkerTable::Session& session, double now) {
  std::vector<Grant> held = orders_.HeldBy(session.id);
  std::ranges::reverse(held);
  const bool has_suspect =
      std::ranges::any_of(held, [](const Grant& order) { return order.work.is_suspect(); });
  for (const Grant& order : held) {
    if (has_suspect && !order.work.is_suspect()) {
      Return(order);
    } else {
      ReturnElsewhere(
          order, /*lost=*/true,
          {session.worker, "", absl::StrCat("the lease of build worker ", session.worker, " ran out")}, now);
    }
  }
}

void BuildQueue::Tick(double now) {
  std::vector<Grant> overdue = orders_.Overdue(now);
  std::ranges::reverse(overdue);
  for (const Grant& order : overdue) {
    const WorkerTable::Session* const holder = workers_->Find(order.holder);
    if (holder == nullptr || holder->last_heard > order.renewed) {
      Return(order);  // its worker has gone, or never said that it has the lease
    } else {
      LoseAllOf(*holder, now);
    }
  }
}

void BuildQueue::Revoke(const std::string& job) {
  for (const Grant& order : orders_.HeldOf(job)) {
    WorkerTable::Session* const holder = workers_->Find(order.holder);
    if (holder == nullptr) continue;
    v1::LeaseId& lease = holder->revoked.emplace_back();
    lease.set_trial(order.work.name);
    lease.set_attempt(order.work.attempt);
  }
  orders_.DropJob(job);
}

}  // namespace mycc
