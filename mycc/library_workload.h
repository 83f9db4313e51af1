// Reads the workloads of a compiled library's functions from its description, and makes random inputs for
// them, for `run` and `bench`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/runtime/arguments.h"
#include "codegen/runtime/library.h"
#include "codegen/workload/reference.h"
#include "codegen/workload/tolerance.h"
#include "codegen/workload/workload.h"

namespace mycc {

struct FunctionOrigin {
  Workload workload;     // of a model's function: its inputs and outputs, and no stages
  std::string identity;  // equal for functions that can be compared: the workload's hash; a model's arguments
  Tolerance tolerance;   // of the outputs; a model's kernels add theirs up
  double flops = 0;      // of one call
  std::optional<double> expected_seconds;
};

// FailedPrecondition when the library's JSON does not tell.
absl::StatusOr<FunctionOrigin> OriginOf(const Library& library, const std::string& function);

// Texts stay as they are. REQUIRES: the inputs are the function's.
void Fill(const std::vector<NDArray>& inputs, Arguments* arguments);
// Random inputs, the same for the same seed; indices are within what they index.
void FillRandom(const Workload& workload, uint64_t seed, Arguments* arguments);

}  // namespace mycc
