// What no GPU computes of a model: library kernels, texts and sizes that data decide. Pure.
#pragma once

#include "absl/status/status.h"
#include "codegen/program/program.h"

namespace mycc {

// Unimplemented with the first input, output or node that needs a CPU.
absl::Status CheckForGpu(const ModelProgram& program);

}  // namespace mycc
