// The rounds of the jobs that run: a job's search is built and asked for rounds on a search thread; a round
// goes into the log, and then its trials into the lease queue. A search that crashes is built once more from
// what the log holds; when it crashes again before its next round, its job has failed. Thread rule:
// thread-compatible.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/job_store.h"
#include "proto/search.pb.h"
#include "server/executors.h"
#include "server/job_endings.h"
#include "server/lease_queue.h"
#include "server/running_job.h"
#include "server/time_source.h"

namespace mycc {

class JobRounds {
 public:
  // All must outlive it.
  JobRounds(JobStore* store, LeaseQueue* queue, const TimeSource* time, Executors executors,
            JobEndings* endings, AdvanceJob advance);

  // First the search itself is built, with the rounds that it has proposed before; then rounds are asked for.
  void BuildSearch(RunningJob* job, std::vector<v1::SearchRound> rounds);
  void Ask(RunningJob* job);
  // Writes the round that is unsaved. It stays unsaved where the log cannot be written now, until retry_at.
  void Save(RunningJob* job);

 private:
  void BuildNow(RunningJob* job, SearchStart start);
  void OnStep(RunningJob* job, absl::StatusOr<SearchStep> step);
  void OnSaved(RunningJob* job, const absl::Status& status);
  // The job fails, or its search is built again.
  void OnTrouble(RunningJob* job, const absl::Status& trouble);
  void Rebuild(RunningJob* job);

  JobStore* const store_;
  LeaseQueue* const queue_;
  const TimeSource* const time_;
  const Executors executors_;
  JobEndings* const endings_;
  const AdvanceJob advance_;
};

}  // namespace mycc
