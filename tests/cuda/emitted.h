// Parts that tests of emitted CUDA C++ share: workloads and traces by text, lowered, emitted, compiled by
// NVRTC, and run on the host.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/cuda/program.h"
#include "codegen/passes/lower.h"
#include "codegen/target/target.h"
#include "codegen/workload/reference.h"
#include "codegen/workload/workload.h"

namespace mycc {

Target Sm80();
Target Sm89();
Target Sm90a();

// The schedule that the steps make, lowered for the target.
absl::StatusOr<LoweredFunction> LowerForGpu(const Workload& canonical, const std::string& steps,
                                            const Target& target);

// A schedule of a workload, and what it is to be called in messages.
struct ScheduledCase {
  std::string name;
  Workload canonical;
  Function function;
};
absl::StatusOr<ScheduledCase> CaseOf(const std::string& workload, const std::string& steps);

// Lowers and emits for the targets; all compile, and nothing spills. The program for the last.
absl::StatusOr<CudaProgram> EmitChecked(const ScheduledCase& gpu_case,
                                        const std::vector<Target>& targets = {Sm80(), Sm90a()});

// Checks that the interpreter computes the workload's values from the lowered code.
absl::Status CheckLowered(const Workload& canonical, const LoweredFunction& lowered, double tolerance);

// The lowered code in the interpreter, and the emitted code on the host, compute what the reference computes,
// with the tolerance relative to 1 + its magnitude. One status for each case; FailedPrecondition where the
// schedule is refused.
std::vector<absl::Status> CheckOnHost(const std::vector<ScheduledCase>& cases, double tolerance);

}  // namespace mycc
