// The jobs as people are shown them: those that run, that wait for their turn, and that have ended; also of
// one that the log holds damaged, with the reason. Thread rule: thread-compatible.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/job_store.h"
#include "db/tuning_log.h"
#include "proto/tuning.pb.h"
#include "server/job_waiters.h"
#include "server/running_job.h"
#include "server/time_source.h"

namespace mycc {

// Why a job cannot be taken up.
struct JobTrouble {
  absl::Status why;
  bool is_passing = false;  // else the job has failed, whether or not the log could be told
  double retry_at = 0;
};

// The jobs that do not run yet.
struct JobQueue {
  bool Contains(const std::string& job) const;
  const JobTrouble* TroubleOf(const std::string& job) const;  // null: none

  std::deque<std::string> waiting;  // for their turn
  std::map<std::string, JobTrouble> troubles;
};

class JobListing {
 public:
  // All must outlive it.
  JobListing(const TuningLog* log, const JobStore* store, const RunningJobs* running, const JobQueue* queue,
             const JobWaiters* waiters, const TimeSource* time);

  absl::StatusOr<v1::JobProgress> Progress(const std::string& job) const;
  // The newest first, without tasks; all when `limit` is 0.
  absl::StatusOr<std::vector<v1::JobProgress>> List(uint32_t limit) const;

 private:
  v1::JobProgress ProgressOfRunning(const RunningJob& job, bool with_tasks) const;
  v1::JobProgress ProgressOfStored(const Job& job, bool with_tasks) const;
  void DescribeState(const Job& job, v1::JobProgress* progress) const;

  const TuningLog* const log_;
  const JobStore* const store_;
  const RunningJobs* const running_;
  const JobQueue* const queue_;
  const JobWaiters* const waiters_;
  const TimeSource* const time_;
};

}  // namespace mycc
