// Reads a job back from the log, for a restarted server and for the progress of ended
// jobs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "db/job_store.h"
#include "db/tuning_log.h"
#include "server/job_ledger.h"

namespace mycc {

struct LoadedJob {
  std::unique_ptr<JobLedger> ledger;  // with all proposals, and the results that are known
  std::vector<v1::Proposal> proposals;
  std::vector<Trial> open;  // queued or leased, in order
  double elapsed_seconds = 0;
};

// DataLoss when the bytes are damaged.
absl::StatusOr<LoadedJob> LoadJob(const TuningLog& log, const JobStore& store, const Job& job);

}  // namespace mycc
