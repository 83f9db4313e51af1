// The kernels that faults are planted in: each rule of the spaces that a search walks in, on workloads that
// the interpreter runs in a moment. Thread rule: values; functions are re-entrant.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/interpreter.h"
#include "codegen/passes/lower.h"
#include "codegen/target/target.h"
#include "codegen/workload/reference.h"
#include "codegen/workload/workload.h"

namespace mycc::planted {

struct Kernel {
  std::string name;
  Workload workload;  // canonical
  Target target;
  LoweredFunction code;  // of a GPU's: with a Barrier wherever its threads wait for each other
  std::vector<NDArray> inputs, expected;
  // Each Barrier stands between what some threads write and others read: left out, that is a race.
  bool barriers_matter = false;

  bool on_gpu() const { return target.kind == TargetKind::kCuda; }
};

// A kernel's origin: the default point of a rule's sketch, or a trace.
struct Recipe {
  std::string name;
  std::string target;
  std::string workload;
  std::string sketch;  // the beginning of a rule's name; empty: the first rule's, or the trace's
  std::string trace;   // steps; empty: the rule's default
  bool barriers_matter = false;
};
const std::vector<Recipe>& Recipes();
absl::StatusOr<Kernel> Make(const Recipe& recipe);

}  // namespace mycc::planted
