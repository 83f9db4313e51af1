// Random schedules: whatever steps the primitives accept, in any order.
#pragma once

#include <cstdint>

#include "codegen/schedule/schedule.h"

namespace mycc {

// Tries about `attempts` random steps on the naive nest; refused ones leave no mark.
Schedule RandomSchedule(const Workload& canonical, const Target& target, uint64_t seed, int attempts);

}  // namespace mycc
