// The device time and the trials of each owner of jobs, by the hours in which they were used. The server
// keeps them here for its quotas. Thread rule: thread-safe; each call is one transaction, durable when it
// returns OK.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/tuning_log.h"

namespace mycc {

struct Use {
  double device_seconds = 0;
  int64_t trials = 0;
};
// By hours since 1970.
using UseByHour = std::map<int64_t, Use>;

class UsageStore {
 public:
  // REQUIRES: the log is open for writing, where Save is called, and outlives the store.
  explicit UsageStore(TuningLog* log) : database_(log->database()) {}

  // All that is known of the owner: it replaces what was stored.
  absl::Status Save(const std::string& owner, const UseByHour& use);
  absl::StatusOr<std::map<std::string, UseByHour>> Load() const;

 private:
  Database* const database_;
};

}  // namespace mycc
