// Checks a kernel against its workload on this machine, for schedules that no worker has verified.
#pragma once

#include <string>

#include "codegen/driver/kernel_spec.h"

namespace mycc {

struct SpotCheck {
  enum Verdict { kRight, kWrong, kUnchecked /* this machine cannot run the target's code */ };
  Verdict verdict;
  std::string detail;  // in words
};

// Runs the kernel on random inputs and compares elements spread over each output with the reference
// semantics, within the tolerance that a worker allows; then on inputs with special values, as a worker does.
SpotCheck CheckOnRandomInputs(const KernelSpec& kernel, const Target& target);

}  // namespace mycc
