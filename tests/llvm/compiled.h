// Parts that tests of compiled code share: workloads and traces by text, lowered, compiled and run, against
// the reference and the interpreter.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "codegen/passes/lower.h"
#include "codegen/target/target.h"
#include "codegen/workload/workload.h"

namespace mycc {

// Targets that this machine can run, narrow to wide: SSE2 alone, AVX, AVX2 with FMA, AVX-512, and Zen 4's.
std::vector<Target> RunnableTargets();
bool IsRunnable(const Target& target);  // by its instructions; caches do not matter
Target AvxTarget();                     // AVX2, whatever the tests run on
Target Avx512Target();                  // Sapphire Rapids

absl::StatusOr<LoweredFunction> LowerTrace(const Workload& canonical, const std::string& steps,
                                           const Target& target);

// Lowers and compiles the schedule, runs it on random inputs, and compares with the reference. Floats may
// differ by `tolerance` relative to 1 + the reference's magnitude. `interpret` runs the lowered IR in the
// interpreter too.
absl::Status CheckCompiled(const Workload& canonical, const std::string& steps, const Target& target,
                           double tolerance, bool interpret = true);

// The same for a function that is scheduled already.
absl::Status CheckCompiledFunction(const Workload& canonical, const Function& function, const Target& target,
                                   double tolerance, bool interpret = true);

}  // namespace mycc
