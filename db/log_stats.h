// Counts what a log contains, for `mycc-tune log stats`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "db/tuning_log.h"

namespace mycc {

struct KeyStats {
  std::string workload_name;
  LogKey key;
  int64_t records = 0;
  int64_t verified_ok = 0;
  double best_warm_seconds = 0;  // pins apart; 0 when there is none
  double best_cold_seconds = 0;
  double best_model_seconds = 0;  // timed as in a model
  bool pinned = false;
  int64_t banned = 0;
};

struct LogStats {
  int64_t records = 0;
  int64_t workloads = 0;
  int64_t targets = 0;
  int64_t pins = 0;
  int64_t bans = 0;
  int64_t jobs = 0;
  int64_t models = 0;
  int64_t foreign = 0;          // records of others (foreign_table.h)
  int64_t foreign_waiting = 0;  // of them, those that wait to be measured here
  int64_t open_trials = 0;
  int64_t file_bytes = 0;
  int64_t version = 0;
  int64_t oldest_unix_micros = 0;  // of the records
  int64_t newest_unix_micros = 0;
  std::map<int, int64_t> by_status;  // by MeasureStatus
  std::vector<KeyStats> keys;        // in the order in which they came into the log
};

absl::StatusOr<LogStats> ReadLogStats(const TuningLog& log);

}  // namespace mycc
