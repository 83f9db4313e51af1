// Lists the instruction sets that LLVM's code for a CPU target may use, which the artifact checks before its
// first call. Pure.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "codegen/runtime/artifact/artifact.h"
#include "codegen/target/target.h"

namespace mycc {

// The names in the rows have static lifetime. REQUIRES: a CPU target. InvalidArgument for a CPU that LLVM
// does not know.
absl::StatusOr<std::vector<MyccCpuNeed>> CpuNeeds(const Target& target);

}  // namespace mycc
