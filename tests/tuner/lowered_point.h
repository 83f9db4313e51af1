// Points of GPU sketches, lowered and run by the machine's interpreter.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "codegen/target/target.h"
#include "tuner/space/space.h"

namespace mycc {

// OK when the point replays and lowers, and computes what the workload's stages say within `tolerance`, a
// share of the largest result. The error has the trace.
absl::Status CheckLoweredPoint(const Workload& workload, const Target& target, const Sketch& sketch,
                               const Choice& choice, double tolerance);

// A decision's choice in a point, by the last part of the decision's name; empty where there is none.
std::string ValueOf(const Sketch& sketch, const Choice& choice, const std::string& name);

// Fails the calling test unless `most` legal points of the rule's sketch are right, the default one first.
// With `decision`, only points in which it is `value` are checked.
void CheckLowered(const std::string& text, const Target& target, const std::string& rule, int most,
                  const std::string& decision = "", const std::string& value = "", double tolerance = 2e-2);

}  // namespace mycc
