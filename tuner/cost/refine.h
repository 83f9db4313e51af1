// The best schedule that needs no measuring: coordinate descent from the rules' own guesses under the
// analytic model. Pure and deterministic; some ten milliseconds for a contraction.
#pragma once

#include <vector>

#include "codegen/target/target.h"
#include "codegen/workload/workload.h"
#include "tuner/space/refit.h"

namespace mycc {

struct Refined {
  Point point;
  Trace trace;
  double seconds = 0;  // analytic
};

// One for each sketch whose default replays within the target's limits, in the sketches' order. A default is
// replaced only by a point with a clearly shorter estimate, since the model does not resolve small
// differences.
std::vector<Refined> RefineDefaults(const Workload& canonical, const Target& target,
                                    const std::vector<Sketch>& sketches);

}  // namespace mycc
