// All jobs of a server: taken in (job_admission.h), searched (job_proposals.h), and ended (job_endings.h).
// Everything that a restart needs is in the log before it happens. Rounds' trials go to the lease queue.
//
//   Submit -> search (on the search thread): next proposal -> log -> lease queue
//   ... OnFinished -> search: next proposal ... -> end
//
// Thread rule: thread-compatible. Search work runs through the executor, and only its `done` part comes back
// here.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/job_store.h"
#include "db/model_store.h"
#include "db/tuning_log.h"
#include "proto/names.h"
#include "proto/tuning.pb.h"
#include "server/executors.h"
#include "server/job_admission.h"
#include "server/job_endings.h"
#include "server/job_proposals.h"
#include "server/lease_queue.h"
#include "server/owners.h"
#include "server/running_job.h"
#include "server/shared_tasks.h"
#include "server/time_source.h"
#include "server/twin_trials.h"

namespace mycc {

struct JobBoardOptions {
  OwnerOptions owners;
  JobAdmissionOptions admission;
  JobEndingOptions endings;
  int most_searches = 64;  // of jobs that run: others are made again when they are needed
};

// The owner of the workers ends or adopts a job's leases.
struct JobBoardHooks {
  // The job has ended: none of its trials is leased any more, and its workers are told.
  std::function<void(const std::string& job)> revoke;
  // Leases from before a restart were adopted.
  std::function<void(const std::string& job)> on_adopted;
  // The number of devices that can measure code for the target.
  std::function<int64_t(const Target&)> devices;
};

class JobBoard {
 public:
  JobBoard(JobBoardOptions options, TuningLog* log, LeaseQueue* queue, const TimeSource* time,
           const Executors& executors, JobBoardHooks hooks);
  JobBoard(const JobBoard&) = delete;
  JobBoard& operator=(const JobBoard&) = delete;

  JobAdmission& admission() { return admission_; }
  const JobAdmission& admission() const { return admission_; }
  // Grows with every change of the job; 0 for one that does not run.
  uint64_t RevisionOf(const std::string& job) const;

  // The job whose trials, or final rounds, may be leased; null otherwise.
  const JobLedger* Leasable(const std::string& job) const;
  // Whether the quotas of the job's owner let its trials be leased now. They do not hold back final rounds.
  bool MayLease(const std::string& job) const;
  bool IsRunning(const std::string& job) const { return running_.contains(job); }
  size_t num_running() const { return running_.size(); }
  // The job while it runs, and while it ends; null otherwise.
  const JobLedger* LedgerOf(const std::string& job) const;
  // Reads what the jobs and their owners left. REQUIRES: called first.
  absl::Status Start();
  // A trial's result is in the log.
  void OnFinished(const TrialId& trial, const v1::MeasureResult& result);

  // A final round was measured: the candidate's result, and its rivals'. `done` hears OK when they are in the
  // log. An error is the log's: the round is still open, and the same report may go better later.
  void FinishRound(const std::string& job, const std::string& round,
                   const std::vector<v1::MeasureResult>& results, const LogWriteDone& done);
  // The round cannot be held.
  void GiveUpRound(const std::string& job, const std::string& round, const std::string& why);

  // The log's file is gone: running and waiting jobs have failed, and are shown so as long as the server
  // lives.
  void OnLogGone(const absl::Status& why);
  // Why nothing was written the last time, where the log was gone.
  const absl::Status& log_gone() const { return log_gone_; }
  void OnLogThere() { log_gone_ = absl::OkStatus(); }
  // Ends what ran out of time, and repeats failed writes.
  void Tick();

  // A remark on crashes of the job's search; empty: there was none.
  std::string SearchNoteOf(const std::string& job) const;
  int64_t search_crashes() const { return proposals_.crashes(); }  // of all jobs
  int64_t searches() const;                                        // that are there

 private:
  // Takes the next step that the job's state asks for; the job may be gone afterwards.
  void Advance(RunningJob* job);
  void TickJob(RunningJob* job);
  // Ends it where its time is over.
  void WatchTime(RunningJob* job);
  void SetTerms(const std::string& job, const JobTerms& terms);
  // Tells each job how many trials the farm can have in flight for it: jobs share the devices that fit.
  void SetWindows();
  void QueueTrials(const JobLedger& ledger, const std::vector<Trial>& open);
  // The result of a trial, its own or another's, is in the log.
  void TakeResult(const TrialId& trial, const v1::MeasureResult& result);
  void Discard(std::unique_ptr<RunningJob> job);
  void Remove(RunningJob* job);
  RunningJob* Find(const std::string& job) const;

  JobStore store_;
  ModelStore models_;
  LeaseQueue* const queue_;
  const TimeSource* const time_;
  const JobBoardHooks hooks_;
  const SearchExecutor search_;
  Owners owners_;
  const int most_searches_;
  RunningJobs running_;
  double windows_at_ = 0;  // then they are set again
  size_t jobs_seen_ = 0;   // running ones, when they were set
  absl::Status log_gone_;
  // Cancelled while their search was at work, which they outlive. One of the same id may run again.
  std::vector<std::unique_ptr<RunningJob>> discarded_;
  JobEndings endings_;
  TwinTrials twins_;
  JobProposals proposals_;
  JobAdmission admission_;
  SharedTasks shared_;
};

}  // namespace mycc
