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
// In candidate order.
absl::StatusOr<std::vector<Trial>> ReadTrials(Database* database, int64_t task_id, uint32_t from_generation);

// A trial's key and record, without the result.
absl::StatusOr<v1::Record> RecordOf(Database* database, const TrialRow& row);

}  // namespace mycc
