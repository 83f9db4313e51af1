// Looks up what the log knows of a job's workloads when the job begins. It is stored with the job, so that
// the job's search does not change when the log grows. Thread rule: thread-compatible.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/target/target.h"
#include "db/tuning_log.h"
#include "proto/job_state.pb.h"
#include "server/job_plan.h"

namespace mycc {

// The look-up for one job. Records that tasks of a family share are read once.
class History {
 public:
  // The log must outlive it.
  explicit History(const TuningLog* log) : log_(log) {}

  // The traces to begin with, best first: of this workload, those of others that wait to be measured here
  // (db/foreign_table.h), of it on other targets, of the same computation at other shapes, and, where this
  // target has too few of those, on other targets of its sort. `reused` where the
  // log holds as many measured candidates as `trials` asks for (0: time is the limit, which no log
  // satisfies), unless `fresh`.
  absl::StatusOr<v1::StoredTask> Recall(const PlannedTask& task, uint32_t trials, bool fresh);
  // The number of measured candidates that the log holds of the workload, counted up to `most`; 0 where none
  // of them is valid.
  absl::StatusOr<int64_t> CountMeasured(const PlannedTask& task, int64_t most) const;

 private:
  struct Shape {
    std::string workload_hash;
    double work = 0;  // the logarithm of its number of operations
    std::vector<int64_t> extents = {};
    bool is_known = false;                 // whether the log was asked for its best
    std::optional<std::string> best = {};  // its best record's trace
  };
  // A computation at any shape, on a target.
  using Family = std::pair<std::string, std::string>;

  // Ordered by their number of operations.
  absl::StatusOr<std::vector<Shape>*> ShapesOf(const Family& family);
  // The log is asked once for each shape, however many tasks a job has and however many shapes have no
  // record.
  absl::Status FindBest(const PlannedTask& task, Shape* shape);
  // The best trace of each of the nearest shapes that have one: by extents, among those nearest by work.
  absl::StatusOr<std::vector<std::string>> NearestShapes(const PlannedTask& task, size_t count);

  // The best of a computation at some shape on some target.
  struct Elsewhere {
    std::string target_text;
    Target target;
    std::vector<int64_t> extents;
    std::string trace;
  };
  absl::StatusOr<const std::vector<Elsewhere>*> ElsewhereOf(const PlannedTask& task);
  // The best traces of the nearest shapes on other targets, those of the most similar devices first.
  absl::StatusOr<std::vector<std::string>> NearestElsewhere(const PlannedTask& task, size_t count);

  const TuningLog* const log_;
  std::map<Family, std::vector<Shape>> shapes_;
  // By shape-erased hash and protocol: read where a target of a job has too few shapes of its own.
  std::map<std::pair<std::string, v1::TimingProtocol>, std::vector<Elsewhere>> elsewhere_;
};

}  // namespace mycc
