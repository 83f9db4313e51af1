// The rounds of the jobs that run: a job's search is built and asked for rounds on the search thread; a round
// goes into the log, and then its trials into the lease queue. Thread rule: thread-compatible. Search work
// runs through the executor, and only its `done` part comes back here.
#pragma once

#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/job_store.h"
#include "db/log_writer.h"
#include "db/model_store.h"
#include "server/job_endings.h"
#include "server/lease_queue.h"
#include "server/running_job.h"
#include "server/time_source.h"

namespace mycc {

class JobRounds {
 public:
  // All must outlive it.
  JobRounds(JobStore* store, ModelStore* models, LeaseQueue* queue, const TimeSource* time,
            WriteExecutor write, SearchExecutor executor, JobEndings* endings, AdvanceJob advance);

  // First the search itself is built, brought to where it was by `restore`; then rounds are asked for.
  void BuildSearch(RunningJob* job, std::function<absl::Status(JobSearch*)> restore);
  void Ask(RunningJob* job);
  // Writes the round that is unsaved. It stays unsaved where the log cannot be written now.
  void Save(RunningJob* job);

 private:
  void OnRound(RunningJob* job, absl::StatusOr<std::optional<SearchRound>> round);

  JobStore* const store_;
  ModelStore* const models_;
  LeaseQueue* const queue_;
  const TimeSource* const time_;
  const WriteExecutor write_;
  const SearchExecutor executor_;
  JobEndings* const endings_;
  const AdvanceJob advance_;
};

}  // namespace mycc
