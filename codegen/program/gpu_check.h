// Refuses models that no GPU computes: those with library kernels, texts, or sizes that data decide. Pure.
#pragma once

#include "absl/status/status.h"
#include "codegen/program/program.h"

namespace mycc {

// Unimplemented with the first input, output or node that needs a CPU.
absl::Status CheckForGpu(const ModelProgram& program);

}  // namespace mycc
