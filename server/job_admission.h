// The jobs as clients know them: taken in, queued for their turn, taken up again after a restart, cancelled,
// shown. Thread rule: thread-compatible.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/job_store.h"
#include "db/log_writer.h"
#include "db/model_store.h"
#include "db/tuning_log.h"
#include "proto/tuning.pb.h"
#include "server/job_endings.h"
#include "server/job_plan.h"
#include "server/job_rounds.h"
#include "server/lease_queue.h"
#include "server/running_job.h"
#include "server/time_source.h"

namespace mycc {

struct JobAdmissionOptions {
  int generation_size = 16;
  int max_running = 32;    // jobs; more wait for their turn
  int max_waiting = 1000;  // and more than that are refused
  // Whether Start takes up every unfinished job of the log; otherwise one is taken up when it is submitted
  // again.
  bool resume_all = true;
};

class JobAdmission {
 public:
  // All must outlive it. It adds to `running`.
  JobAdmission(JobAdmissionOptions options, TuningLog* log, JobStore* store, ModelStore* models,
               LeaseQueue* queue, const TimeSource* time, WriteExecutor write, RunningJobs* running,
               JobRounds* rounds, JobEndings* endings, AdvanceJob advance);

  absl::Status Start();
  // As JobBoard has them.
  absl::StatusOr<v1::JobProgress> Submit(const v1::SubmitJobRequest& request);
  absl::StatusOr<v1::JobProgress> Cancel(const std::string& job);
  absl::StatusOr<v1::JobProgress> Progress(const std::string& job);
  absl::StatusOr<std::vector<v1::JobProgress>> List(uint32_t limit);

  // Begins jobs that wait, as far as there is room.
  void StartWaiting();

 private:
  absl::Status Create(const std::string& id, const JobPlan& plan, const std::string& submission);
  absl::Status Resume(const Job& job);
  bool IsWaiting(const std::string& job) const;
  v1::JobProgress ProgressOf(const RunningJob& job, bool with_tasks) const;
  v1::JobProgress ProgressOfEnded(const Job& job, const ActiveJob& active, bool with_tasks) const;

  const JobAdmissionOptions options_;
  TuningLog* const log_;
  JobStore* const store_;
  ModelStore* const models_;
  LeaseQueue* const queue_;
  const TimeSource* const time_;
  const WriteExecutor write_;
  RunningJobs* const running_;
  JobRounds* const rounds_;
  JobEndings* const endings_;
  const AdvanceJob advance_;
  std::deque<std::string> waiting_;  // jobs for their turn
};

}  // namespace mycc
