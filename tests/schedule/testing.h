// Parts that schedule tests share: workloads by text, traces by text, and the interpreter as the oracle.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/ir/interpreter.h"
#include "codegen/schedule/schedule.h"
#include "codegen/workload/reference.h"

namespace mycc {

// How many seeds a random test runs: `usual`, a fifth of that under AddressSanitizer, or what the environment
// variable MYCC_RANDOM_SEEDS says.
int RandomSeeds(int usual);

// The canonical form of a workload given as text; aborts on a malformed one.
Workload CanonicalWorkload(const std::string& text);
// An AVX2 machine, whatever the tests run on.
Target TestTarget();
Target TestGpu();  // an H200

// Compares what `who` computed with what was expected: integers exactly, floats within `tolerance` relative
// to 1 + the expected magnitude (reassociated sums); NaN where it is expected.
absl::Status CheckClose(const std::vector<NDArray>& actual, const std::vector<NDArray>& expected,
                        double tolerance, const std::string& who);

// Replays the trace, verifies the IR after every step, and runs the result against the reference on random
// inputs, under several orders of parallel iterations, as CheckClose compares.
absl::Status CheckTrace(const std::string& workload, const std::string& steps, double tolerance = 1e-5,
                        const Target& target = TestTarget());
absl::Status CheckFunction(const Workload& canonical, const Function& function, double tolerance = 1e-5);

// The function after the steps, as text; the error's text when a step is refused.
std::string ScheduledText(const std::string& workload, const std::string& steps,
                          const Target& target = TestTarget());

}  // namespace mycc
