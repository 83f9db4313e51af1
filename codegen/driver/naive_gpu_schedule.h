// The simplest GPU schedule: correct for every workload, and fast enough to check other kernels against.
// Pure.
#pragma once

#include "absl/status/statusor.h"
#include "codegen/schedule/schedule.h"

namespace mycc {

// Fuses each block's axes and binds them to thread blocks and threads: each thread computes one element of
// the block's tensor, with its whole reduction. REQUIRES: a schedule without steps.
absl::StatusOr<Schedule> NaiveGpuSchedule(Schedule naive);

}  // namespace mycc
