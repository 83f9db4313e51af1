// Times a library's function on a GPU with the device's clock, around the launches of a CUDA graph, so that
// no time of the host is included.
#pragma once

#include <memory>

#include "mycc/stopwatch.h"

namespace mycc {

// As StopwatchFor, for a library of a GPU. Cold: all of L2 is written over before each call. REQUIRES: the
// arguments are uploaded.
absl::StatusOr<std::unique_ptr<Stopwatch>> CudaStopwatch(Library* library, Arguments* arguments, bool cold);

}  // namespace mycc
