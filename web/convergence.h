// How the best time of each task of a job fell, trial by trial. A job that is looked at again costs what its
// log gained. Thread rule: thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "db/log_views.h"

namespace mycc {

struct BestPoint {
  int64_t trial = 0;  // of the task, from 1
  int64_t recorded_unix_micros = 0;
  double seconds = 0;  // the best until then
};

struct TaskConvergence {
  int64_t trials = 0;
  int64_t last_unix_micros = 0;   // of the last trial
  std::vector<BestPoint> points;  // one for each improvement
};

// Takes a job's results in the order of the log. Those of final rounds, which time candidates again, do not
// count.
class Convergence {
 public:
  explicit Convergence(const std::vector<int64_t>& task_keys);
  void Add(const CandidateRow& row);

  int64_t last_id() const { return last_id_; }
  const std::vector<TaskConvergence>& tasks() const { return tasks_; }

 private:
  std::unordered_map<int64_t, size_t> task_of_key_;
  std::vector<TaskConvergence> tasks_;
  int64_t last_id_ = 0;
};

// Keeps those of the jobs that were looked at last.
class Convergences {
 public:
  absl::StatusOr<std::vector<TaskConvergence>> Read(const TuningLog& log, const std::string& job);

 private:
  struct Entry {
    std::string job;
    Mutex mutex;
    std::unique_ptr<Convergence> read ABSL_GUARDED_BY(mutex);
  };
  std::shared_ptr<Entry> EntryOf(const std::string& job);

  Mutex mutex_;
  std::list<std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);  // that looked at last first
};

}  // namespace mycc
