// Ends jobs: workers report what they still hold, the final rounds are held, the search's models are stored,
// and the job's final state is written. Thread rule: as job_proposals.h.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "db/job_store.h"
#include "db/model_store.h"
#include "db/tuning_log.h"
#include "proto/records.pb.h"
#include "proto/tuning.pb.h"
#include "server/executors.h"
#include "server/job_finals.h"
#include "server/lease_queue.h"
#include "server/running_job.h"
#include "server/time_source.h"
#include "tuner/scheduler/task_scheduler.h"

namespace mycc {

struct JobEndingOptions {
  double ending_seconds = 5;   // for leased trials to be reported when a job ends before them
  double finals_seconds = 60;  // for a worker to take a final round, or the next one
};

class JobEndings {
 public:
  // The job's end is in the log; the job is not used again.
  using OnEnded = std::function<void(RunningJob*)>;

  // The progress of a job as it is shown to people.
  using ShowJob = std::function<v1::JobProgress(const RunningJob&)>;

  // All must outlive it; the log and its stores are used in writes alone.
  JobEndings(JobEndingOptions options, TuningLog* log, JobStore* store, ModelStore* models, LeaseQueue* queue,
             const TimeSource* time, Executors executors, AdvanceJob advance, ShowJob show, OnEnded on_ended);

  // The job is to end in this state, unless it ends already: nothing more of it is leased.
  void End(RunningJob* job, JobState state, const std::string& message);
  void EndAsSearched(RunningJob* job, StopReason reason);
  // Does what the ending asks for next; the job may be gone afterwards. REQUIRES: job->ending.
  void Advance(RunningJob* job);

  // A final round was measured: `done` hears OK when its records are in the log, or it is no round at all.
  void FinishRound(RunningJob* job, const std::string& round, const std::vector<v1::MeasureResult>& results,
                   const LogWriteDone& done);
  // It cannot be held.
  void GiveUpRound(RunningJob* job, const std::string& round, const std::string& why);
  // Gives up those that no worker takes.
  void WatchFinals(RunningJob* job);

 private:
  // The trials are over: the final rounds begin, where the job has come to its end.
  void PlanRounds(RunningJob* job);
  void BeginFinals(RunningJob* job, const FinalsPlan& plan);
  void OnRoundWritten(RunningJob* job, const std::string& round, const std::vector<v1::Record>& records,
                      const absl::Status& status, const LogWriteDone& done);
  // The models that the search has trained go into the log before the job ends.
  void SaveModels(RunningJob* job);
  void KeepModels(const std::string& job, ModelBytes models);
  void Finalize(RunningJob* job);
  void OnFinalized(RunningJob* job, const absl::Status& status);

  const JobEndingOptions options_;
  TuningLog* const log_;
  JobStore* const store_;
  ModelStore* const models_;
  LeaseQueue* const queue_;
  const TimeSource* const time_;
  const Executors executors_;
  const AdvanceJob advance_;
  const ShowJob show_;
  const OnEnded on_ended_;
};

}  // namespace mycc
