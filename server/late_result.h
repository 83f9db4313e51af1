// Keeps the result of a trial whose job has ended: facts that the job knew are read from the log. Thread
// rule: runs where the log is changed.
#pragma once

#include "absl/status/status.h"
#include "db/job_store.h"
#include "proto/worker.pb.h"
#include "server/result_check.h"

namespace mycc {

// `source` says which worker and device it is of. InvalidArgument when it cannot be.
absl::Status KeepLateResult(JobStore* store, FinishedTrial finished, Expectation source);

}  // namespace mycc
