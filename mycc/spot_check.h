// Checks a kernel against its workload on this machine, for schedules that no worker has verified.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "codegen/driver/kernel_spec.h"
#include "codegen/target/target.h"

namespace mycc {

// The number of a device of this machine that runs the target's code: of a GPU, or 0 for the CPU. NotFound,
// with the reason, where there is none.
absl::StatusOr<int> FindDevice(const Target& target);

struct SpotCheck {
  enum Verdict { kRight, kWrong, kUnchecked /* this machine cannot run the target's code */ };
  Verdict verdict;
  std::string detail;  // in words
};

// Runs the kernel on random inputs and compares elements spread over each output with the reference
// semantics, within the tolerance that a worker allows; then on inputs with special values, as a worker does.
SpotCheck CheckOnRandomInputs(const KernelSpec& kernel, const Target& target);

}  // namespace mycc
