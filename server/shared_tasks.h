// Tasks that running jobs have in common are measured once. A job that begins leaves a task to a job that
// measures the same one already: the same workload, target and protocol, by the same strategy, whatever the
// seed, with as many trials or the very same limits, and no earlier deadline. It must not wait for less
// urgent work (urgency.h), nor for a job that waits for its turn. The results of such a task are the other
// job's.
//
//   begins --Share--> measured by job J --(J has as many trials, or is done)--> its results
//                            '--(J ended before, is less urgent now, or stands still)--> searched by the job
//
// A task stands still when J has had no trial of it for two minutes, and measures other tasks meanwhile that
// this job does not have, or when J's search has not answered for so long.
//
// The log keeps which job measures a task, so this holds over restarts. A job that was asked for afresh, and
// one of the strategy `listed`, whose candidates are its own, measure all of their tasks. Thread rule:
// thread-compatible. No call blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/job_store.h"
#include "server/executors.h"
#include "server/job_ledger.h"
#include "server/job_proposals.h"
#include "server/owners.h"
#include "server/running_job.h"

namespace mycc {

class SharedTasks {
 public:
  // Whether a job that does not run waits for its turn, or is being taken up.
  using IsOnItsWay = std::function<bool(const std::string& job)>;

  // All must outlive it.
  SharedTasks(JobStore* store, const RunningJobs* running, const Owners* owners, IsOnItsWay is_on_its_way,
              const TimeSource* time, Executors executors, JobProposals* proposals, AdvanceJob advance)
      : store_(store),
        running_(running),
        owners_(owners),
        is_on_its_way_(std::move(is_on_its_way)),
        time_(time),
        executors_(std::move(executors)),
        proposals_(proposals),
        advance_(std::move(advance)) {}

  // Leaves tasks of a job that has proposed nothing yet to running jobs. Returns the specs that changed.
  TaskSpecs Share(JobLedger* ledger) const;
  // Takes over what others have measured, and takes back what they will not measure.
  void Watch(RunningJob* job);

 private:
  // A task whose wait is over.
  struct Settled {
    uint32_t task = 0;
    v1::StoredTask stored;
    double best_seconds = 0;  // of one that was measured
  };
  using AllSettled = std::vector<Settled>;

  bool MayMeasureFor(const RunningJob& other, const JobLedger& ledger, const JobTerms& terms) const;
  // Whether the other job's task stands still, which is this job's task `own`.
  bool StandsStill(const RunningJob& other, uint32_t task, RunningJob* job, uint32_t own) const;
  // The number of the other job's task that is the same, and that it measures itself; -1: none.
  static int SameTask(const JobLedger& other, const PlannedTask& task);
  static absl::StatusOr<AllSettled> Settle(const JobLedger& ledger, const std::vector<uint32_t>& tasks,
                                           TuningLog* log);
  void Write(RunningJob* job, const std::shared_ptr<const AllSettled>& settled);
  void Apply(RunningJob* job, const AllSettled& settled);

  JobStore* const store_;
  const RunningJobs* const running_;
  const Owners* const owners_;
  const IsOnItsWay is_on_its_way_;
  const TimeSource* const time_;
  const Executors executors_;
  JobProposals* const proposals_;
  const AdvanceJob advance_;
};

}  // namespace mycc
