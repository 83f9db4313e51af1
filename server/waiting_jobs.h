// The jobs that wait for their turn. A new job's turn begins with looking up what the log knows of
// its workloads; an unfinished job's turn begins with reading it back from the log. Both happen
// beside the deciding thread. A job that cannot be taken up now keeps its turn and delays no other
// job.
//
// The next turn is of the highest priority; among equals, of the owner with the fewest running jobs; then of
// the job that has waited longest. Jobs that run only when the farm is idle come last. A job beyond its
// owner's quota of running jobs is passed by. A job whose deadline is over needs no turn: it ends.
//
//   Enqueue -> waiting -> looked up --(new)--> prepared: its tasks are written -> looked up
//                            '--(has tasks)--> running
//
// Thread rule: thread-compatible. No call blocks.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/job_store.h"
#include "server/executors.h"
#include "server/job_changes.h"
#include "server/job_proposals.h"
#include "server/load_job.h"
#include "server/new_job.h"
#include "server/owners.h"
#include "server/running_job.h"
#include "server/time_source.h"

namespace mycc {

// Why a job cannot be taken up.
struct JobTrouble {
  absl::Status why;
  bool is_passing = false;  // else the job has failed, whether or not the log could be told
  double retry_at = 0;
};

struct WaitingJobsOptions {
  int max_running = 256;     // jobs, those that are being taken up among them
  double retry_seconds = 1;  // for a job that could not be read
};

// The parts that are left to others.
struct WaitingJobsHooks {
  // A job is taken up: these of its trials go to the lease queue.
  std::function<void(const JobLedger& ledger, const std::vector<Trial>& open)> queue_trials;
  // The job's end is in the log: it had nothing to search, or cannot be taken up.
  std::function<void(const std::string& job)> on_ended;
  // Leaves tasks to jobs that measure them already, and returns the specs of tasks that have changed.
  std::function<TaskSpecs(JobLedger* ledger)> share;
};

class WaitingJobs {
 public:
  // All must outlive it. It adds to `running`.
  WaitingJobs(WaitingJobsOptions options, JobStore* store, const TimeSource* time, const Owners* owners,
              Executors executors, JobChanges* changes, RunningJobs* running, JobProposals* proposals,
              WaitingJobsHooks hooks);

  // A job that neither runs nor waits yet; its turn comes.
  void Enqueue(const std::string& job, const JobTerms& terms);
  // The same, but its turn does not come before StartWaiting: so the most urgent of many is the first.
  void Append(const std::string& job, const JobTerms& terms);
  // They have changed.
  void SetTerms(const std::string& job, const JobTerms& terms);
  // The terms of a job that waits; null: it does not.
  const JobTerms* TermsOfWaiting(const std::string& job) const;
  // The job has ended, or runs no more.
  void Forget(const std::string& job);
  // The log is gone from its place: what waits, or is being taken up, has failed.
  void OnLogGone(const absl::Status& why);
  // Takes up those that wait, as far as there is room.
  void StartWaiting();

  bool Contains(const std::string& job) const;  // it waits or is being taken up
  bool IsBeingTakenUp(const std::string& job) const { return taking_up_.contains(job); }
  // Calls when the job runs, or cannot be taken up. REQUIRES: it is being taken up.
  void AfterTakingUp(const std::string& job, std::function<void()> call);
  const JobTrouble* TroubleOf(const std::string& job) const;  // null: none
  size_t num_waiting() const { return waiting_.size(); }
  uint32_t num_waiting(const std::string& owner) const;
  uint32_t num_running(const std::string& owner) const;
  void AddOwners(std::set<std::string>* owners) const;  // of those that wait
  // Whether a new job of the owner need not wait.
  bool HasRoomFor(const std::string& owner) const;
  // For people. REQUIRES: it waits.
  std::string WhyWaiting(const std::string& job) const;

 private:
  // A job whose turn has come, as the log has it.
  struct Found {
    bool is_over = false;                 // it has ended meanwhile
    std::optional<PreparedJob> prepared;  // it has no tasks yet, and these are they
    std::optional<LoadedJob> loaded;
  };
  static absl::StatusOr<Found> LookUp(TuningLog* log, const std::string& id);

  // One time that a job is taken up: another one after it was cancelled and submitted again.
  struct TakingUp {
    uint64_t number = 0;
    JobTerms terms;
    std::vector<std::function<void()>> afterwards;
  };
  bool IsOn(const std::string& id, uint64_t number) const;
  struct Waiting {
    std::string id;
    JobTerms terms;
  };
  std::deque<Waiting>::iterator FindWaiting(const std::string& job);
  size_t Room() const;
  bool IsOver(const JobTerms& terms) const;
  // The index, among those that wait, of the job whose turn is next; -1: of none.
  int Next(const std::map<std::string, uint32_t>& running) const;
  std::map<std::string, uint32_t> RunningByOwner() const;
  // From here on, until `Took`.
  void TakeUp(const std::string& id, uint64_t number);
  void OnFound(const std::string& id, uint64_t number, absl::StatusOr<Found> found);
  void WritePrepared(const std::string& id, uint64_t number, PreparedJob prepared);
  void Share(const std::string& id, uint64_t number, LoadedJob loaded);
  void Run(const std::string& id, LoadedJob loaded);
  void Took(const std::string& id);
  // It cannot be taken up: now, or at all.
  void KeepTrouble(const std::string& id, const absl::Status& why);

  const WaitingJobsOptions options_;
  JobStore* const store_;
  const TimeSource* const time_;
  const Executors executors_;
  JobChanges* const changes_;
  RunningJobs* const running_;
  JobProposals* const proposals_;
  const WaitingJobsHooks hooks_;
  const Owners* const owners_;
  std::deque<Waiting> waiting_;  // in the order in which they came
  std::map<std::string, TakingUp> taking_up_;
  uint64_t taken_up_ = 0;  // times so far
  std::map<std::string, JobTrouble> troubles_;
};

}  // namespace mycc
