// Who notices a fault: the verifier, the interpreter (races, deadlocks, indices out of range, what is never
// written), or whoever compares results with the reference as a worker does. Pure functions.
#pragma once

#include <string>

#include "tests/perf/planted/kernel.h"

namespace mycc::planted {

struct Verdict {
  std::string by;    // "verifier", "interpreter", "results"; empty: nobody
  std::string what;  // in its words
};
Verdict Judge(const Kernel& kernel, const LoweredFunction& code);

// The whole of a kernel's code as one function.
Function WholeOf(const LoweredFunction& code);
// Runs it as the kernel's threads meet.
absl::StatusOr<std::vector<NDArray>> RunCode(const Kernel& kernel, const Function& whole, uint64_t seed);
// The first output that is not as expected, in words; empty where all are.
std::string WrongResult(const Kernel& kernel, const std::vector<NDArray>& outputs);

}  // namespace mycc::planted
