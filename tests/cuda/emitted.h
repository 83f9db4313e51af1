// What tests of emitted CUDA C++ share: workloads and traces by text, lowered, emitted and compiled.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "codegen/cuda/program.h"
#include "codegen/passes/lower.h"
#include "codegen/target/target.h"
#include "codegen/workload/workload.h"

namespace mycc {

Target Sm80();
Target Sm90a();

// The schedule that the steps make, lowered for the target.
absl::StatusOr<LoweredFunction> LowerForGpu(const Workload& canonical, const std::string& steps,
                                            const Target& target);

// The emitted program; it compiles for sm_80 and sm_90a, without a spill.
absl::StatusOr<CudaProgram> EmitChecked(const std::string& workload, const std::string& steps);

}  // namespace mycc
