// Candidates that several running jobs have in common are measured once. The trial that is queued first
// leads; those of other jobs with the same workload, target, protocol and trace are its twins. They stay out
// of the queue, and take its result. A candidate that another running job has measured already is not queued
// at all.
//
//   proposed -> recorded by a running job?  -> finished by that record
//            -> queued or leased for one?   -> a twin: finished with its leader, or queued when that ends
//            without
//            -> queued
//
// A job that was asked for afresh, and one of the strategy `listed`, measures all of its candidates, for
// others too.
//
// A trial does not wait for a less urgent one (urgency.h): where the leader still waits for a device, the two
// change places. Nothing of this is stored but the results: after a restart the open trials are compared
// anew. Thread rule: thread-compatible. No call blocks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/tuning_log.h"
#include "proto/names.h"
#include "server/executors.h"
#include "server/lease_queue.h"
#include "server/owners.h"
#include "server/running_job.h"

namespace mycc {

class TwinTrials {
 public:
  // A trial is finished by another one's result.
  using OnMeasured = std::function<void(const TrialId& trial, const v1::MeasureResult& result)>;

  // All must outlive it; the log is used in writes alone.
  TwinTrials(TuningLog* log, LeaseQueue* queue, const RunningJobs* running, const Owners* owners,
             Executors executors, OnMeasured on_measured, AdvanceJob advance)
      : log_(log),
        queue_(queue),
        running_(running),
        owners_(owners),
        executors_(std::move(executors)),
        on_measured_(std::move(on_measured)),
        advance_(std::move(advance)) {}

  // Queues a job's trials, but for those that others measure or have measured.
  void Queue(RunningJob* job, std::vector<QueuedWork> trials);
  // The trial is measured in any case, and leads where no other one does.
  void Own(const JobLedger& ledger, const QueuedWork& trial);
  // The result of a trial is in the log.
  void OnFinished(const std::string& trial, const v1::MeasureResult& result);
  // Frees the twins of trials that will not be measured, or not soon.
  void Watch();
  void Forget(const std::string& job);

 private:
  // The result of each trial that was measured, with the trial that it is of.
  struct Found {
    std::string trial;
    v1::MeasureResult result;
  };
  using AllFound = std::vector<std::optional<Found>>;

  static std::string KeyOf(const JobLedger& ledger, const QueuedWork& trial);
  static absl::StatusOr<AllFound> Find(const JobLedger& ledger, const std::vector<QueuedWork>& trials,
                                       const std::set<std::string>& jobs, TuningLog* log);
  // The running jobs that may have measured the job's candidates: itself, where its search began anew.
  std::set<std::string> JobsLike(const RunningJob& job, const std::vector<QueuedWork>& trials) const;
  const RunningJob* Alive(const std::string& job) const;
  bool MayLead(const std::string& leader, const JobTerms& terms) const;
  void Add(QueuedWork trial);
  void Lead(const std::string& key, QueuedWork trial);
  void Finish(const QueuedWork& trial, const Found& found);

  TuningLog* const log_;
  LeaseQueue* const queue_;
  const RunningJobs* const running_;
  const Owners* const owners_;
  const Executors executors_;
  const OnMeasured on_measured_;
  const AdvanceJob advance_;
  std::map<std::string, std::string> leaders_;            // of the open trials, by key
  std::map<std::string, std::string> keys_;               // of the leaders
  std::map<std::string, std::vector<QueuedWork>> twins_;  // by leader
};

}  // namespace mycc
