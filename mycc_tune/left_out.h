// Collects the damaged records that a command leaves out, and reports them. Thread rule: thread-compatible.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "db/tuning_log.h"

namespace mycc {

// Outlives the logs that it watches.
class LeftOut {
 public:
  void Watch(TuningLog* log);
  // `done`, or DataLoss, with the records' ids, for a command that has done all else.
  absl::Status After(const absl::Status& done) const;

 private:
  std::map<std::string, std::set<int64_t>> ids_;  // by the log's path
};

}  // namespace mycc
