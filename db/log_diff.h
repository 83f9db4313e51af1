// The difference between two logs: the best records of each workload, target and protocol, side by side. Both
// logs are only read. Thread rule: functions are re-entrant.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/tuning_log.h"

namespace mycc {

// A key under whose protocol a log has a record that ranks.
struct RankedKey {
  LogKey key;
  std::string workload_name;
  v1::TimingProtocol protocol = v1::TIMING_PROTOCOL_UNSPECIFIED;
};
// By workload hash, target and protocol.
absl::StatusOr<std::vector<RankedKey>> RankedKeys(const TuningLog& log);

enum class Change {
  kSame,    // the same record
  kFaster,  // the second log's best is faster
  kSlower,
  kTie,         // their intervals of 95 % confidence overlap, or their times are equal
  kOtherTimer,  // timed by other versions of the timer: the times do not compare
  kOnlyFirst,
  kOnlySecond,
};
// "same", "faster", "slower", "tie", "other_timer", "only_first", "only_second".
const char* ChangeName(Change change);

struct KeyDifference {
  RankedKey key;
  Change change = Change::kSame;
  std::optional<StoredRecord> first, second;
  // The second's time over the first's; 0 where they do not compare.
  double ratio = 0;
  std::optional<bool> intervals_overlap;  // nullopt where one has no interval
  // Known of keys that both logs have.
  bool same_trace = false, same_code = false, same_worker = false, same_device = false;
};

// Two best records of one key.
KeyDifference CompareBest(RankedKey key, StoredRecord first, StoredRecord second);
// Calls `visit` for each key that one of the logs has, in the order of RankedKeys. Stops at an error.
absl::Status ForEachDifference(const TuningLog& first, const TuningLog& second,
                               const std::function<absl::Status(const KeyDifference&)>& visit);

}  // namespace mycc
