// A job as the log keeps it, read back whole: for a server that starts again, and for progress of jobs that
// have ended.
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
