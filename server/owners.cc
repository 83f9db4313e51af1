#include "server/owners.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "server/job_terms.h"

namespace mycc {
namespace {

constexpr int64_t kMicrosAnHour = int64_t{3600} * 1000000;
constexpr int64_t kHoursOfUse = 24;
constexpr double kReadAgainSeconds = 1, kSaveSeconds = 10;

// "2026-11-24 18:00 UTC"
std::string AtHour(int64_t hour) {
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", absl::FromUnixMicros(hour * kMicrosAnHour),
                          absl::UTCTimeZone());
}

// The hour from which the use is below the limit, as hours of use go by.
int64_t FreeFrom(const UseByHour& hours, const std::function<bool(const Use&)>& is_free) {
  Use left;
  for (const auto& [hour, use] : hours) {
    left.device_seconds += use.device_seconds;
    left.trials += use.trials;
  }
  int64_t free = 0;
  for (const auto& [hour, use] : hours) {
    left.device_seconds -= use.device_seconds;
    left.trials -= use.trials;
    free = hour + kHoursOfUse;
    if (is_free(left)) break;
  }
  return free;
}

std::string Named(const std::string& owner) { return owner.empty() ? "the owner without a name" : owner; }

}  // namespace

Owners::Owners(OwnerOptions options, TuningLog* log, const TimeSource* time, WriteExecutor write)
    : options_(std::move(options)),
      store_(log),
      time_(time),
      write_(std::move(write)),
      clock_(time),
      quotas_(options_.quotas_file) {}

absl::Status Owners::Start() {
  MYCC_RETURN_IF_ERROR(quotas_.Refresh());
  MYCC_ASSIGN_OR_RETURN(used_, store_.Load());
  Tick();
  return absl::OkStatus();
}

void Owners::Tick() {
  clock_.Tick();
  const double now = time_->Seconds();
  if (now < look_at_) return;
  look_at_ = now + kReadAgainSeconds;
  if (const absl::Status read = quotas_.Refresh(); !read.ok() && options_.log)
    options_.log(absl::StrCat("the quotas stay as they were: ", read.message()));
  held_back_.clear();
  for (auto& [owner, hours] : used_) {
    Normalize(&hours);
    std::string why = WhyHeldBack(owner, hours);
    if (!why.empty()) held_back_[owner] = std::move(why);
  }
  std::erase_if(used_,
                [this](const auto& used) { return used.second.empty() && !unsaved_.contains(used.first); });
  if (now >= save_at_) Save();
}

int64_t Owners::Hour() const { return clock_.UnixMicros() / kMicrosAnHour; }

void Owners::Normalize(UseByHour* hours) const {
  const int64_t now = Hour();
  std::erase_if(*hours, [now](const auto& use) { return use.first <= now - kHoursOfUse; });
  while (!hours->empty() && hours->rbegin()->first > now) {
    const Use later = std::prev(hours->end())->second;
    hours->erase(std::prev(hours->end()));
    (*hours)[now].device_seconds += later.device_seconds;
    (*hours)[now].trials += later.trials;
  }
}

void Owners::Save() {
  save_at_ = time_->Seconds() + kSaveSeconds;
  for (const std::string& owner : std::exchange(unsaved_, {})) {
    write_([store = &store_, owner, use = used_[owner]] { return store->Save(owner, use); },
           [this, owner](const absl::Status& status) {
             if (!status.ok()) unsaved_.insert(owner);
           });
  }
}

absl::Status Owners::CheckPriority(const std::string& owner, int priority) const {
  if (priority < -kMostPriority || priority > kMostPriority) {
    return absl::InvalidArgumentError(
        absl::StrCat("the priority is ", priority, "; expected ", -kMostPriority, " to ", kMostPriority));
  }
  const v1::Quota& quota = QuotaOf(owner);
  if (!quota.has_highest_priority() || priority <= quota.highest_priority()) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("the priority ", priority,
                                                  " is above the quota "
                                                  "highest_priority of ",
                                                  Named(owner), ", which is ", quota.highest_priority()));
}

void Owners::Add(const std::string& owner, double device_seconds, int64_t trials) {
  Use& use = used_[owner][Hour()];
  use.device_seconds += device_seconds;
  use.trials += trials;
  unsaved_.insert(owner);
}

Use Owners::Sum(const UseByHour& hours) {
  Use sum;
  for (const auto& [hour, use] : hours) {
    sum.device_seconds += use.device_seconds;
    sum.trials += use.trials;
  }
  return sum;
}

std::string Owners::WhyHeldBack(const std::string& owner, const UseByHour& hours) const {
  const v1::Quota& quota = QuotaOf(owner);
  const Use used = Sum(hours);
  const double seconds = quota.device_seconds_per_day();
  const int64_t trials = quota.trials_per_day();
  if (quota.has_device_seconds_per_day() && used.device_seconds >= seconds) {
    const int64_t free =
        FreeFrom(hours, [seconds](const Use& left) { return left.device_seconds < seconds; });
    return absl::StrFormat(
        "waiting: %s has used %.0f of the %.0f device seconds of the quota device_seconds_per_day in the "
        "last "
        "24 hours; more are free at %s",
        Named(owner), used.device_seconds, seconds, AtHour(free));
  }
  if (quota.has_trials_per_day() && used.trials >= trials) {
    const int64_t free = FreeFrom(hours, [trials](const Use& left) { return left.trials < trials; });
    return absl::StrFormat(
        "waiting: %s has used %d of the %d trials of the quota trials_per_day in the last 24 hours; more are "
        "free at %s",
        Named(owner), used.trials, trials, AtHour(free));
  }
  return "";
}

const std::string& Owners::HeldBack(const std::string& owner) const {
  static const std::string* const kNot = new std::string();
  const auto found = held_back_.find(owner);
  return found == held_back_.end() ? *kNot : found->second;
}

v1::OwnerStatus Owners::StatusOf(const std::string& owner) const {
  v1::OwnerStatus status;
  status.set_owner(owner);
  if (const auto found = used_.find(owner); found != used_.end()) {
    const Use used = Sum(found->second);
    status.set_device_seconds(used.device_seconds);
    status.set_trials(used.trials);
  }
  *status.mutable_quota() = QuotaOf(owner);
  status.set_held(HeldBack(owner));
  return status;
}

std::set<std::string> Owners::Known() const {
  std::set<std::string> owners;
  for (const auto& [owner, hours] : used_) owners.insert(owner);
  return owners;
}

}  // namespace mycc
