// Compiles a .te file or a model to kernels, the common part of `compile` and `explain`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/program/program.h"
#include "codegen/target/target.h"
#include "codegen/workload/workload.h"
#include "command/model.h"
#include "mycc/finder.h"
#include "mycc/groupings.h"

namespace mycc {

struct KernelSource {
  ModelSource model;  // or workloads, without options
  std::string target = "host";
  std::string tuning_log;  // empty: none
  std::string cost_model;  // a file with a learned model that chooses where nothing was measured; empty: none
  std::string lock;        // a lock file that gives target and schedules; empty: none
  std::string trace;       // a file with the trace for the only workload; empty: look up
};

struct Kernels {
  Target target;
  std::vector<Found> found;               // in the file's order, or in the program's
  std::optional<ModelProgram> program;    // of a model
  std::vector<ChosenGrouping> groupings;  // in place of its default kernels
  std::vector<std::string> warnings;      // about the source, for people
};

// Errors name the file and the workload.
absl::StatusOr<Kernels> ResolveKernels(const KernelSource& source);
// The target, the program and the groupings of a model, without kernels. REQUIRES: no lock.
absl::StatusOr<Kernels> ResolveProgram(const KernelSource& source);

}  // namespace mycc
