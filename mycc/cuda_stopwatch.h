// Times a library's function on a GPU with the device's clock, around the launches of a CUDA graph, so that
// no time of the host is included.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "codegen/runtime/arguments.h"
#include "codegen/runtime/library.h"
#include "mycc/commands.h"

namespace mycc {

// Seconds of a call, of each sample. Cold: all of L2 is written over before each call. REQUIRES: the
// arguments are uploaded and packed, and the function has been called once without an error.
absl::StatusOr<std::vector<double>> TimeOnCuda(Library* library, Arguments* arguments,
                                               const BenchOptions& options);

}  // namespace mycc
