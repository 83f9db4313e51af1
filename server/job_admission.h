// Handles what clients ask of jobs: submit, wait, leave, cancel; and takes jobs up again after a restart.
// Each answer is in the log before it is given.
//
//   Submit -> the submission's newest job that has not failed:  running    -> joined
//                                                               done       -> shown
//                                                               cancelled  -> taken up again
//                                                               none       -> made
//
// Thread rule: thread-compatible. No call blocks: a reply comes now or in a later turn.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/job_store.h"
#include "proto/tuning.pb.h"
#include "server/executors.h"
#include "server/job_changes.h"
#include "server/job_listing.h"
#include "server/job_proposals.h"
#include "server/job_waiters.h"
#include "server/new_job.h"
#include "server/reply.h"
#include "server/running_job.h"
#include "server/time_source.h"
#include "server/waiting_jobs.h"

namespace mycc {

std::string RandomJobId();

struct JobAdmissionOptions {
  int generation_size = 16;
  int max_running = 256;   // jobs; more wait for their turn
  int max_waiting = 1000;  // and more than that are refused
  // Whether Start takes up every unfinished job of the log; otherwise one is taken up when it is submitted
  // again.
  bool resume_all = true;
  double retry_seconds = 1;    // for a job that could not be read
  double waiter_seconds = 30;  // of silence, then a client does not wait any more
  // After a restart, clients need this time to call again: until then, no client is the last one to leave.
  double hear_again_seconds = 5;
  std::function<std::string()> new_job_id = RandomJobId;
};

// The callbacks by which admission tells other parts.
struct JobAdmissionHooks {
  // A job was taken up: these of its trials go to the lease queue.
  std::function<void(const JobLedger& ledger, const std::vector<Trial>& open)> queue_trials;
  // A running job was cancelled, and is no longer among the running ones.
  std::function<void(std::unique_ptr<RunningJob>)> discard;
  // The terms of a running job have changed, and are in the log.
  std::function<void(const std::string& job, const JobTerms& terms)> set_terms;
  // A job is about to be taken up: its tasks that others measure are left to them. Returns what has changed.
  std::function<TaskSpecs(JobLedger* ledger)> share;
};

class JobAdmission {
 public:
  // All must outlive it. It adds to `running`, and takes cancelled jobs from there.
  JobAdmission(JobAdmissionOptions options, JobStore* store, const TimeSource* time, const Owners* owners,
               Executors executors, RunningJobs* running, JobProposals* proposals, JobAdmissionHooks hooks);

  // Reads which jobs are unfinished. REQUIRES: nothing is written yet.
  absl::Status Start();

  void Submit(const v1::SubmitJobRequest& request, const JobReply& reply);
  // Changes the priority or the deadline. FailedPrecondition when the job has ended.
  void Update(const v1::UpdateJobRequest& request, const JobReply& reply);
  // The owners that have jobs, or used the farm lately.
  v1::ListOwnersResponse ListOwners() const;
  // NotFound when there is no such job. One that has ended stays as it is.
  void Cancel(const v1::CancelJobRequest& request, const JobReply& reply);
  void Leave(const v1::LeaveJobRequest& request, const JobReply& reply);
  // The client waits for the job, and counts for `seconds` until its next call.
  absl::Status Renew(const std::string& job, const std::string& client, double seconds);

  const JobListing& listing() const { return listing_; }
  // Whether the job waits for its turn or is being taken up, or is changed now: what the log knows of it may
  // have been read, and must stay true.
  bool IsOnItsWay(const std::string& job) const { return turns_.Contains(job) || changes_.IsHeld(job); }
  size_t num_waiting() const { return turns_.num_waiting(); }
  // Changes a job that does not run. It is not taken up again meanwhile.
  void Change(const std::string& job, LogWrite write, LogWriteDone done) {
    changes_.Change(job, std::move(write), std::move(done));
  }

  // The log's file is gone: jobs that do not run yet have failed.
  void OnLogGone(const absl::Status& why) { turns_.OnLogGone(why); }
  // The job's end is in the log.
  void OnEnded(const std::string& job);
  // Begins jobs that wait, as far as there is room; answers those that left.
  void Tick();
  // Answers all calls that would have to wait.
  void RefuseWaiting(const absl::Status& status);

 private:
  struct Submission {
    JobRequest request;
    std::string digest, client;
  };
  struct Leaving {
    std::string job;
    JobReply reply;
  };

  void Admit(const std::shared_ptr<const Submission>& submission, const JobReply& reply);
  static absl::StatusOr<std::optional<Job>> FindJob(const Submission& submission, TuningLog* log);
  // Handles a submission; `known` is the job that it has made, from the log, or none.
  void Decide(const std::optional<Job>& known, const std::shared_ptr<const Submission>& submission,
              const JobReply& reply);
  void Create(const std::shared_ptr<const Submission>& submission, const JobReply& reply);
  void Join(const Job& job, const Submission& submission, const JobReply& reply);
  void Reopen(const Job& job, const std::shared_ptr<const Submission>& submission, const JobReply& reply);
  // The end of a submission: from now on the client waits for the job and sees it.
  void Answer(const std::string& job, const Submission& submission, const JobReply& reply);

  // Whether the submission's job may begin, or wait.
  absl::Status CheckRoom(const JobRequest& request) const;
  absl::Status CheckDeadline(int64_t deadline_unix_micros) const;
  const JobTerms* KnownTerms(const std::string& job) const;

  void EndCancelled(const std::string& job, const std::string& why, const JobReply& reply);
  void CommitLeaving();
  void CommitLeaving(const Leaving& leaving);

  const JobAdmissionOptions options_;
  JobStore* const store_;
  const TimeSource* const time_;
  const Owners* const owners_;
  const Executors executors_;
  RunningJobs* const running_;
  const JobAdmissionHooks hooks_;
  JobChanges changes_;
  WaitingJobs turns_;
  JobWaiters waiters_;
  const JobListing listing_;
  std::vector<Leaving> leaving_;
  double all_heard_at_ = 0;  // from then on, those that wait are known
};

}  // namespace mycc
