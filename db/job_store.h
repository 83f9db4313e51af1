// Jobs and their searches, in the same file as the log: after kill -9 at any point, a server that opens the
// file again finds every job, the state of its search, each candidate and its holder, and no trial that was
// finished is open.
//
//   job -> task (a workload on a target) -> generation -> trial -> record
//
// A trial is queued, leased (attempt n, by a worker), and at last finished, in the transaction that appends
// its record, or dropped, with its job. The attempt number fences reports: only the trial's current attempt
// is heard. How long a lease lasts is the server's business, on its own clock. Thread rule: thread-safe; each
// call is one transaction, durable when it returns OK.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "db/record_table.h"
#include "db/schema.h"
#include "db/tuning_log.h"
#include "proto/records.pb.h"

namespace mycc {

// `spec`, `summary` and the states are the server's own bytes.
struct Job {
  std::string id;
  JobState state = JobState::kRunning;
  std::string owner;  // who submitted it first; older builds left the job's name here
  std::string spec;
  std::string scheduler_state;  // of the proposals that an older build wrote; empty in newer jobs
  std::string message;          // why it is in this state, for people
  std::string submission;       // what asked for it, as JobsOf knows it; empty: nothing can ask for it again
  std::string summary;          // as in JobSummary
  int64_t created_unix_micros = 0;
  int64_t updated_unix_micros = 0;
};

struct Task {
  std::string job;
  uint32_t index = 0;
  KeyText key;
  std::string spec;
  std::string search_state;  // of the generations that an older build wrote; empty in newer jobs
  bool done = false;
  std::string outcome;  // of a task that is done, for people
};

struct NewTrial {
  std::string trace;
  v1::Provenance provenance;  // job, task, generation and index are set by the store
};

// One generation of a task's candidates, which is one proposal for its job.
struct Generation {
  std::string job;
  uint32_t task = 0;
  uint32_t generation = 0;
  uint32_t proposal = 0;         // of the job, counted from 0
  double elapsed_seconds = 0;    // of the job, when it was proposed
  std::string state;             // what the search says about it
  std::vector<NewTrial> trials;  // in candidate order
};

// The line of a job in a list.
struct JobSummary {
  std::string id;
  JobState state = JobState::kRunning;
  std::string message;
  std::string summary;  // written when it ended; empty where it has not, or ended under an older build
};

struct Trial {
  std::string name;  // proto/names.h
  uint32_t task = 0;
  uint32_t generation = 0;
  uint32_t index = 0;
  std::string trace;  // empty: it is lost, in a damaged row
  v1::Provenance provenance;
  TrialState state = TrialState::kQueued;
  uint32_t attempt = 0;  // of the last lease; 0 before the first
  uint32_t lost_attempts = 0;
  std::string worker;  // of the last lease
  int64_t leased_unix_micros = 0;
  int64_t created_unix_micros = 0;
  int64_t record_id = 0;  // of a finished trial
  std::optional<v1::MeasureResult> result;
  std::string damage;  // why the row cannot be read as a whole; empty: it can
};

// A worker's report for an attempt.
struct FinishedTrial {
  std::string trial;
  uint32_t attempt = 0;
  v1::MeasureResult result;
};

// An attempt that ended without a verdict on the candidate.
struct LostAttempt {
  std::string trial;
  uint32_t attempt = 0;
  std::string worker;
  // Unspecified: handed back untouched, which is not counted.
  v1::MeasureStatus status = v1::MEASURE_STATUS_UNSPECIFIED;
  std::string evidence;
  int64_t ended_unix_micros = 0;
};

class JobStore {
 public:
  // REQUIRES: the log is open for writing and outlives the store.
  explicit JobStore(TuningLog* log) : log_(log), database_(log->database()) {}

  // A job with its tasks, numbered from 0 in the order given; their `job` and `index` are set. Repeated with
  // the same id and spec it changes nothing; AlreadyExists with another spec.
  absl::Status CreateJob(const Job& job, absl::Span<const Task> tasks);
  absl::StatusOr<Job> GetJob(const std::string& id) const;
  // The oldest first; all states when none is given.
  absl::StatusOr<std::vector<Job>> ListJobs(absl::Span<const JobState> states = {}) const;
  // The jobs of one submission, the newest first.
  absl::StatusOr<std::vector<Job>> JobsOf(const std::string& submission) const;
  // The states kDone, kCancelled and kFailed end a job: its open trials are dropped. FailedPrecondition when
  // it has ended before.
  absl::Status SetJobState(const std::string& id, JobState state, const std::string& message);
  // A cancelled job runs again: the trials that were dropped with it are queued. FailedPrecondition when it
  // is not cancelled.
  absl::Status ReopenJob(const std::string& id);
  absl::Status SetJobSpec(const std::string& id, const std::string& spec);
  // The newest first; all when `limit` is 0.
  absl::StatusOr<std::vector<JobSummary>> ListSummaries(uint32_t limit) const;
  // Stores the summary of a job that has ended.
  absl::Status SetSummary(const std::string& id, const std::string& summary);
  // Adds the tasks of a job that was made without, and its spec. FailedPrecondition when it has
  // some.
  absl::Status AddTasks(const std::string& job, const std::string& spec, absl::Span<const Task> tasks);
  absl::StatusOr<bool> HasTasks(const std::string& job) const;
  absl::StatusOr<std::vector<Task>> LoadTasks(const std::string& job) const;
  // Replaces the job's spec and those of some of its tasks, by their numbers.
  absl::Status SetSpecs(const std::string& job, const std::string& spec,
                        absl::Span<const std::pair<uint32_t, std::string>> tasks);
  absl::Status FinishTask(const std::string& job, uint32_t task, const std::string& outcome);

  // Queues a generation. AlreadyExists when the task has that generation, FailedPrecondition when the job has
  // ended.
  absl::Status AddGeneration(const Generation& generation);
  // The job's generations in the order of its proposals, without their trials and without those that an older
  // build wrote.
  absl::StatusOr<std::vector<Generation>> LoadGenerations(const std::string& job) const;
  // A task's trials in candidate order, from a generation on, with the results of those that are finished.
  absl::StatusOr<std::vector<Trial>> LoadTrials(const std::string& job, uint32_t task,
                                                uint32_t from_generation = 0) const;
  absl::StatusOr<Trial> GetTrial(const std::string& name) const;

  // Leases queued trials to a worker and returns their attempt numbers. FailedPrecondition, and none is
  // leased, when one is not queued.
  absl::StatusOr<std::vector<uint32_t>> LeaseTrials(absl::Span<const std::string> names,
                                                    const std::string& worker);
  // Records results. Each has its own answer: the record's id (not new when the trial was finished before),
  // or FailedPrecondition when another attempt has taken this one's place, NotFound, InvalidArgument for a
  // result that cannot be kept. The outer status is the database's: then nothing was recorded.
  absl::StatusOr<std::vector<absl::StatusOr<AppendedRecord>>> FinishTrials(
      absl::Span<const FinishedTrial> reports);
  // Repairs a damaged row: unreadable parts are lost. Before that its trial cannot be finished.
  absl::Status RepairTrial(const std::string& name);
  // Puts a leased trial back into the queue and returns how many of its attempts were lost so far.
  // FailedPrecondition when the attempt does not hold the trial.
  absl::StatusOr<uint32_t> RequeueTrial(const LostAttempt& lost);
  absl::StatusOr<std::vector<LostAttempt>> LostAttempts(const std::string& trial) const;

 private:
  absl::StatusOr<AppendedRecord> InsertNamesake(const FinishedTrial& report);
  absl::StatusOr<AppendedRecord> Finish(const FinishedTrial& report);

  TuningLog* const log_;
  Database* const database_;
};

}  // namespace mycc
