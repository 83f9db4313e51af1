// The good points of a space before anything is measured: a coordinate descent under the scorer's
// predictions, from several starts at once. A decision's values are compared with all others as they are,
// which finds in some hundred predictions what mutation finds in thousands. Deterministic; a function of its
// arguments.
#pragma once

#include <vector>

#include "tuner/search/pool.h"

namespace mycc {

// Moves each start, one decision after the other, to its best predicted neighbour (ordered decisions by two
// places at most), until no move helps or `most_predictions` points were looked at. Returns the ends, the
// best predicted first, without starts that the scorer refuses. REQUIRES: `context` has a scorer; starts are
// legal.
std::vector<Point> DescendPrior(const std::vector<Point>& starts, int most_predictions,
                                const std::vector<Sketch>& sketches, const Pool::Context& context);

}  // namespace mycc
