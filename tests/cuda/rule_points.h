// Checks of points of the rules' spaces for GPUs, for tests of the rules. Thread rule: for tests of one
// thread.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/passes/lower.h"
#include "codegen/target/target.h"
#include "codegen/workload/workload.h"
#include "tuner/space/space.h"

namespace mycc {

// Roundings of the outputs' type; sums of f32 differ by their order alone.
double OutputTolerance(const Workload& workload);

// The point lowered; an error says its trace.
absl::StatusOr<LoweredFunction> LowerPoint(const Workload& workload, const Sketch& sketch,
                                           const Choice& choice, const Target& target);

// The point lowers, means what the workload means by the interpreter, and compiles without spills.
void CheckPoint(const Workload& workload, const Sketch& sketch, const Choice& choice, const Target& target);

// The default point, and `count` random ones.
void CheckPointsOf(const Workload& workload, const Sketch& sketch, const Target& target, int count);

// The sketches whose default traces have this step.
std::vector<Sketch> SketchesWith(const Workload& workload, const std::string& step, const Target& target);

}  // namespace mycc
