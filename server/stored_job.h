// Reads a job back from the log, for a restarted server and for the progress of ended
// jobs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "db/job_store.h"
#include "db/tuning_log.h"
#include "server/active_job.h"

namespace mycc {

struct StoredJobState {
  std::unique_ptr<ActiveJob> job;  // with all rounds, and the results that are known
  std::vector<v1::SearchRound> rounds;
  std::vector<Trial> open;  // queued or leased, in order
  double elapsed_seconds = 0;
};

// DataLoss when the bytes are damaged.
absl::StatusOr<StoredJobState> LoadJob(const TuningLog& log, const JobStore& store, const Job& job);

}  // namespace mycc
