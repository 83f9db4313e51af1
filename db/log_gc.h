// Removes records and search states that are not worth their space, for `mycc-tune log gc`.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "db/tuning_log.h"

namespace mycc {

// Pinned and banned records always stay, and so do results of a job that runs or may go on. A job that is
// done or has failed is shown by its summary, and needs its records no more.
struct GcPolicy {
  static constexpr int64_t kNever = -1;
  // Jobs that ended this long ago lose their search state and trials; their records stay.
  int64_t ended_jobs_after_seconds = int64_t{30} * 86400;
  // Failures, and results that newer ones have superseded, recorded this long ago.
  int64_t failures_after_seconds = kNever;
  // The number of the best verified records that stay of each key, protocol and timer version; 0: all.
  int64_t keep_best = 0;
  bool dry_run = false;  // only counts
};

struct GcCounts {
  int64_t jobs = 0;
  int64_t records = 0;
  int64_t records_in_use = 0;  // beyond keep_best, and kept because a job needs them
  int64_t models = 0;          // all but the newest of each kind, while no job runs or may go on
  int64_t foreign = 0;         // foreign records whose traces were measured here
  int64_t keys = 0;            // without records and tasks
};

// Deletes in one transaction, and returns the space to the file system where no other process has the log
// open.
absl::StatusOr<GcCounts> CollectGarbage(TuningLog* log, const GcPolicy& policy);

}  // namespace mycc
