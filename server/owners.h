// The owners of jobs: what they may use, what they have used in the last 24 hours, and whether their trials
// wait for that. Use is counted by hours, and goes to the log every 10 s: a server that is killed forgets so
// much at most. Thread rule: thread-compatible. No call blocks, but for reading a small file that has
// changed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "db/log_writer.h"
#include "db/usage_store.h"
#include "proto/tuning.pb.h"
#include "server/quotas.h"
#include "server/time_source.h"
#include "server/wall_clock.h"

namespace mycc {

struct OwnerOptions {
  std::string quotas_file;                      // empty: no limits
  std::function<void(const std::string&)> log;  // a line for people; may be null
};

class Owners {
 public:
  // All must outlive it; the store is used in writes, and when it starts.
  Owners(OwnerOptions options, TuningLog* log, const TimeSource* time, WriteExecutor write);

  // Reads the quotas and what was used before. InvalidArgument where the file is wrong.
  absl::Status Start();
  // Reads changed quotas, and saves what was used.
  void Tick();

  const WallClock& clock() const { return clock_; }
  const v1::Quota& QuotaOf(const std::string& owner) const { return quotas_.quotas().Of(owner); }
  // PermissionDenied names the quota.
  absl::Status CheckPriority(const std::string& owner, int priority) const;
  void Add(const std::string& owner, double device_seconds, int64_t trials);
  // Why the owner's trials wait, and until when; empty: they do not.
  const std::string& HeldBack(const std::string& owner) const;
  // Without the numbers of its jobs.
  v1::OwnerStatus StatusOf(const std::string& owner) const;
  // The owners that have used device time or trials.
  std::set<std::string> Known() const;

 private:
  int64_t Hour() const;
  static Use Sum(const UseByHour& hours);
  // Hours that are over count no more; hours to come, which another clock has left, count as this one.
  void Normalize(UseByHour* hours) const;
  std::string WhyHeldBack(const std::string& owner, const UseByHour& hours) const;
  void Save();

  const OwnerOptions options_;
  UsageStore store_;
  const TimeSource* const time_;
  const WriteExecutor write_;
  WallClock clock_;
  QuotaFile quotas_;
  std::map<std::string, UseByHour> used_;
  std::map<std::string, std::string> held_back_;  // why
  std::set<std::string> unsaved_;
  double look_at_ = 0, save_at_ = 0;
};

}  // namespace mycc
