// Points of the rules' sketches, compiled.
#pragma once

#include "absl/status/status.h"
#include "codegen/target/target.h"
#include "codegen/workload/workload.h"
#include "tuner/space/space.h"

namespace mycc {

// The point's trace replays, verifies and compiles, and computes the reference: the code where this machine
// can run it, elsewhere what is lowered, interpreted. Floats to within `tolerance` relative to 1 + the
// reference's magnitude. Errors hold the trace.
absl::Status CheckSketchPoint(const Workload& canonical, const Target& target, const Sketch& sketch,
                              const Choice& choice, double tolerance);

}  // namespace mycc
