// Points of GPU sketches, lowered and run by the machine's interpreter.
#pragma once

#include "absl/status/status.h"
#include "codegen/target/target.h"
#include "tuner/space/space.h"

namespace mycc {

// OK when the point replays and lowers, and computes what the workload's stages say within `tolerance`, a
// share of the largest result. The error has the trace.
absl::Status CheckLoweredPoint(const Workload& workload, const Target& target, const Sketch& sketch,
                               const Choice& choice, double tolerance);

}  // namespace mycc
