// The CUDA back end: emits lowered IR as CUDA C++ without any #include, and lists the launches of a call and
// of packing. Thread rule: functions are re-entrant.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "codegen/cuda/program.h"
#include "codegen/passes/lower.h"
#include "codegen/target/target.h"

namespace mycc {

// Kernels are named SYMBOL_0, SYMBOL_1, ... in the order of a call, and SYMBOL_pack_0, ... in that of
// packing. Errors: FailedPrecondition when the function does not fit a GPU's grid, blocks and memories.
// REQUIRES: a CUDA target, and a function that was lowered for it.
absl::StatusOr<CudaProgram> EmitCuda(const LoweredFunction& lowered, const Target& target,
                                     const std::string& symbol);

// The same program with its kernels named after another symbol. REQUIRES: a program of EmitCuda.
CudaProgram WithSymbol(CudaProgram program, const std::string& symbol);

}  // namespace mycc
