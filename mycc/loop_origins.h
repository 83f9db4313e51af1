// Prints a schedule as pseudocode for `mycc explain`, with the step that made each loop. Pure.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "codegen/schedule/trace.h"
#include "codegen/target/target.h"
#include "codegen/workload/workload.h"

namespace mycc {

// A line that says what the canonical names stand for in `workload`: "t0 is a, t1 is b, t2[a0; r0] is c[i;
// k]".
std::string NamesOfTensors(const Workload& workload);

// The same line, and the nest, in which each loop is
// followed by the axis it is, or by the steps that made and marked it:
//
//   # t0 is a, t1 is b, t2[a0; r0] is c[i; k]
//   function w(...) -> (...)
//     parallel t2.a0.0 in 4     # split(t2.a0, [8]), bind(t2.a0.0, parallel)
//       for t2.r0 in 64         # k of c
absl::StatusOr<std::string> ExplainNest(const Workload& workload, const Target& target, const Trace& trace);

}  // namespace mycc
