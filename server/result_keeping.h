// Writes results into the log, also when the trial's row is damaged or its job has ended. Thread rule: runs
// on the thread that changes the log.
#pragma once

#include "absl/status/status.h"
#include "db/job_store.h"
#include "proto/worker.pb.h"
#include "server/result_check.h"

namespace mycc {

// A damaged row costs its trial, and no other one: it ends with a result that says so, in `finished` too.
absl::Status KeepResult(JobStore* store, FinishedTrial* finished);
// Likewise a result of a job that has ended; what the job knew is read from the log. `source` says which
// worker and device it is of. InvalidArgument when it cannot be.
absl::Status KeepLateResult(JobStore* store, FinishedTrial* finished, Expectation source);

}  // namespace mycc
