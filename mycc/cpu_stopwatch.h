// Times a library's function on the CPU with the host's clock.
#pragma once

#include <memory>

#include "mycc/stopwatch.h"

namespace mycc {

// As StopwatchFor, for a library of a CPU.
absl::StatusOr<std::unique_ptr<Stopwatch>> CpuStopwatch(Library* library, Arguments* arguments, bool cold,
                                                        double warm_up_seconds);

}  // namespace mycc
