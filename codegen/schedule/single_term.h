// Reductions of one term, such as the sum of a row of one element, as stages without a reduction. For the
// elide_reduction primitive and the rules. Pure.
#pragma once

#include "codegen/workload/workload.h"

namespace mycc {

// Whether the stage reduces along axes that have one element each. False for argmax and argmin.
bool HasSingleTerm(const Stage& stage);

// The stage whose value is the only term; for a sum of floats, 0 plus it, which turns -0 into 0. REQUIRES:
// HasSingleTerm.
Stage SingleTermStage(const Stage& stage);

}  // namespace mycc
