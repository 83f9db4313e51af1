// Lists jobs for `mycc-tune jobs`: running, waiting, ended, and damaged ones with the reason. An ended job
// has a summary in the log; a job that ended under an older build gets one when it is first listed. Thread
// rule: thread-compatible. No call blocks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "db/job_store.h"
#include "proto/tuning.pb.h"
#include "server/executors.h"
#include "server/job_waiters.h"
#include "server/owners.h"
#include "server/reply.h"
#include "server/running_job.h"
#include "server/time_source.h"
#include "server/waiting_jobs.h"

namespace mycc {

using JobReply = Reply<v1::JobProgress>;

// The summary that a job leaves in the log as it ends: the progress that was shown of it last.
std::string SummaryOf(v1::JobProgress progress, JobState state, const std::string& message);

class JobListing {
 public:
  // All must outlive it.
  JobListing(JobStore* store, const RunningJobs* running, const WaitingJobs* turns, const JobWaiters* waiters,
             const Owners* owners, const TimeSource* time, Executors executors);

  // NotFound when there is no such job.
  void Show(const std::string& job, const JobReply& reply) const;
  // The newest first, without tasks; all when `limit` is 0.
  void List(uint32_t limit, const Reply<v1::ListJobsResponse>& reply) const;

  v1::JobProgress ProgressOf(const RunningJob& job, bool with_tasks) const;

  // A job as the log has it, without a server: one that has not ended is said to wait. NotFound when there is
  // no such job.
  static absl::StatusOr<v1::JobProgress> ReadFromLog(TuningLog* log, const std::string& job);

 private:
  // A job as the log has it.
  struct Stored {
    v1::JobProgress progress;  // of one that has not ended: without what only the server knows
    bool has_ended = false;
    std::string new_summary;  // to be kept; empty: none
  };
  static absl::StatusOr<Stored> Read(TuningLog* log, const std::string& id);
  static Stored ReadRow(TuningLog* log, const JobSummary& row);
  absl::StatusOr<v1::JobProgress> Shown(absl::StatusOr<Stored> stored) const;
  void Describe(v1::JobProgress* progress) const;
  void KeepSummary(const std::string& job, const std::string& summary) const;

  JobStore* const store_;
  const RunningJobs* const running_;
  const WaitingJobs* const turns_;
  const JobWaiters* const waiters_;
  const Owners* const owners_;
  const TimeSource* const time_;
  const Executors executors_;
};

}  // namespace mycc
