// Pages of a log for people who look at it while it is served: the candidates of a job, the workloads with
// their best schedules, sizes. Every call reads a bounded number of rows by an index. Thread rule: functions
// are re-entrant; the log may be shared.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "db/schema.h"
#include "db/tuning_log.h"

namespace mycc {

// A measured candidate, without what only its record has.
struct CandidateRow {
  int64_t id = 0;  // of the record
  std::string trial;
  int64_t key = 0;
  v1::MeasureStatus status = v1::MEASURE_STATUS_UNSPECIFIED;
  bool verified = false;
  bool is_final = false;  // timed in a final round
  double seconds = 0;     // 0: it failed
  int64_t recorded_unix_micros = 0;
  std::string worker;
  std::string head;  // of the trace: its version and sketch
};

// Records of a job after one and before another, in the order of their ids. With `newest`, the page ends with
// the last of them, else it begins with the first.
struct CandidatePage {
  std::string job;
  int64_t key = 0;  // 0: of all tasks
  int64_t after = 0;
  int64_t before = 0;  // 0: to the end
  int64_t limit = 1000;
  bool newest = false;
  bool with_heads = true;
};
absl::StatusOr<std::vector<CandidateRow>> ReadCandidates(const TuningLog& log, const CandidatePage& page);

// The keys of a job's tasks, by their numbers.
absl::StatusOr<std::vector<int64_t>> ReadTaskKeys(const TuningLog& log, const std::string& job);

// A job with records.
struct MeasuredJob {
  std::string id;
  int64_t created_unix_micros = 0;
  int64_t records = 0;
};
// The newest first.
absl::StatusOr<std::vector<MeasuredJob>> ReadMeasuredJobs(const TuningLog& log, int64_t limit);

// A workload and target with records.
struct KeyRow {
  int64_t id = 0;
  std::string workload_name;
  LogKey key;
};
// The newest keys before one (0: all) whose workload's name or target contains a text.
absl::StatusOr<std::vector<KeyRow>> ReadKeys(const TuningLog& log, int64_t before, const std::string& text,
                                             int64_t limit);

struct LogFacts {
  int64_t file_bytes = 0;
  int64_t newest_record = 0;  // its id, which counts the records that were ever appended
  std::map<JobState, int64_t> jobs;
};
absl::StatusOr<LogFacts> ReadLogFacts(const TuningLog& log);

}  // namespace mycc
