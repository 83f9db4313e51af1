// Runs the searches of jobs. A search thread makes a job's search and asks it for proposals; a proposal is
// written to the log, and then its trials go to the lease queue. A search that crashes is made again once
// from the log. When it crashes again before its next proposal, its job fails. Where there are more searches
// than the host should bear, some are ended while they are at rest, and made again from the log when they are
// needed.
//
// Changed rules. A server of another build may search other spaces, which do not hold the recorded proposals.
// Then the search begins anew: each task goes on with its next generation, from the best results so far as
// its history, and its trials so far count. The log keeps that, and the job's message says it. Thread rule:
// thread-compatible.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/job_store.h"
#include "proto/search.pb.h"
#include "server/executors.h"
#include "server/job_endings.h"
#include "server/running_job.h"
#include "server/time_source.h"
#include "server/twin_trials.h"

namespace mycc {

// Writes the specs of tasks, and why the search begins anew where it does.
absl::Status WriteTaskSpecs(JobStore* store, const std::string& job, const TaskSpecs& tasks,
                            const std::string& begun_anew);

class JobProposals {
 public:
  // All must outlive it.
  JobProposals(JobStore* store, TwinTrials* twins, const TimeSource* time, Executors executors,
               JobEndings* endings, AdvanceJob advance);

  // First the search itself is built, with the proposals that it has proposed before; then proposals are
  // asked for.
  void BuildSearch(RunningJob* job, std::vector<v1::Proposal> proposals);
  void Ask(RunningJob* job);
  // The search begins anew. REQUIRES: job->stale.
  void BeginAnew(RunningJob* job);
  // The search is built again from the log, with the tasks that the job searches now.
  void SearchMore(RunningJob* job);
  // Writes the proposal that is unsaved. It stays unsaved where the log cannot be written now, until
  // retry_at.
  void Save(RunningJob* job);
  // Ends searches that are at rest while there are more than `most`.
  void Bound(const RunningJobs& jobs, int most);
  // The crashes of all searches since the server's start.
  int64_t crashes() const { return crashes_; }

 private:
  void BuildNow(RunningJob* job, SearchStart start);
  void OnStep(RunningJob* job, absl::StatusOr<SearchStep> step);
  void OnSaved(RunningJob* job, const absl::Status& status);
  // The job fails, or its search is built again.
  void OnTrouble(RunningJob* job, const absl::Status& trouble);
  void Rebuild(RunningJob* job);
  void WriteAnew(RunningJob* job, std::vector<v1::StoredTask> tasks);

  JobStore* const store_;
  TwinTrials* const twins_;
  const TimeSource* const time_;
  const Executors executors_;
  JobEndings* const endings_;
  const AdvanceJob advance_;
  int64_t crashes_ = 0;
};

}  // namespace mycc
