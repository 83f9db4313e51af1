// Random schedules: whatever steps the primitives accept, in any order.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "codegen/schedule/schedule.h"

namespace mycc {

// Tries about `attempts` random steps on the naive nest. A refusal is one of the answers that are expected,
// when it names its step and is a FailedPrecondition; an Internal error says which step was refused in
// another way or left IR that breaks its own rules.
absl::StatusOr<Schedule> RandomSchedule(const Workload& canonical, const Target& target, uint64_t seed,
                                        int attempts);

}  // namespace mycc
