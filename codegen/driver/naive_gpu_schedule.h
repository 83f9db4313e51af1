// The simplest GPU schedule: correct for every workload, fast enough to check others against. Pure.
#pragma once

#include "absl/status/statusor.h"
#include "codegen/schedule/schedule.h"

namespace mycc {

// From the naive nest: each block's axes as one loop over thread blocks and threads, with an element of the
// block's tensor, and all of its reduction, for each thread. REQUIRES: a schedule without steps.
absl::StatusOr<Schedule> NaiveGpuSchedule(Schedule naive);

}  // namespace mycc
