// The judges of a fault: the verifier, the interpreter (races, deadlocks, indices out of range, elements that
// are never written), and the comparison of results with the reference that a worker makes. Pure functions.
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
// Runs it with the barriers of the kernel's threads.
absl::StatusOr<std::vector<NDArray>> RunCode(const Kernel& kernel, const Function& whole, uint64_t seed);
// The first output that is not as expected, in words; empty where all are.
std::string WrongResult(const Kernel& kernel, const std::vector<NDArray>& outputs);

}  // namespace mycc::planted
