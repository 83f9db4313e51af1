// Converts between trials and rows of the table of trials, for job_store. Thread rule: thread-compatible; the
// caller holds the database's mutex.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "db/database.h"
#include "db/job_store.h"

namespace mycc {

// A row of tasks, by the job's id and the task's number. NotFound names both.
absl::StatusOr<int64_t> FindTask(Database* database, const std::string& job, uint32_t task);

struct TrialRow {
  int64_t id = 0;
  int64_t task_id = 0;
  Trial trial;
};
// NotFound for a name that is malformed or unknown.
absl::StatusOr<TrialRow> FindTrial(Database* database, const std::string& name);
// The part of a trial's row that its end needs.
struct EndingTrial {
  int64_t id = 0;
  int64_t key = 0;  // of its task
  TrialState state = TrialState::kQueued;
  uint32_t attempt = 0;
  int64_t record_id = 0;     // 0: none yet
  std::string stored_trace;  // as the log has it
  v1::Record detail;         // workload's name, provenance, time and attempt
  std::string damage;        // as Trial's
};
// NotFound as FindTrial.
absl::StatusOr<EndingTrial> FindEndingTrial(Database* database, const std::string& name);
// Leases a queued trial, and returns the number of the attempt. FailedPrecondition when it is not queued;
// NotFound as FindTrial.
absl::StatusOr<uint32_t> LeaseTrial(Database* database, const std::string& name, const std::string& worker,
                                    int64_t now_unix_micros);
// In candidate order.
absl::StatusOr<std::vector<Trial>> ReadTrials(Database* database, int64_t task_id, uint32_t from_generation);

// A trial's key and record, without the result.
absl::StatusOr<v1::Record> RecordOf(Database* database, const TrialRow& row);

}  // namespace mycc
