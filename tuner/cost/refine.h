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

// One for each sketch whose default replays within the target's limits, in the sketches' order. A sketch's
// default is left only for what is expected to be clearly faster, since the model's word for small
// differences is worth little.
std::vector<Refined> RefineDefaults(const Workload& canonical, const Target& target,
                                    const std::vector<Sketch>& sketches);

}  // namespace mycc
