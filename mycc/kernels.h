// Compiles a .te file to kernels, the common part of `compile` and `explain`.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/target/target.h"
#include "codegen/workload/workload.h"
#include "mycc/finder.h"

namespace mycc {

struct KernelSource {
  std::string file;  // .te
  std::string target = "host";
  std::string tuning_log;  // empty: none
  std::string trace;       // a file with the trace for the only workload; empty: look up
};

struct Kernels {
  Target target;
  std::vector<Found> found;  // in the file's order
};

// Errors name the file and the workload.
absl::StatusOr<Kernels> ResolveKernels(const KernelSource& source);

}  // namespace mycc
