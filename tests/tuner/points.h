// Checks of a space, for tests of the rules: its default and random points replay, verify, and compute the
// workload's results.
#pragma once

#include <string>

#include "tuner/space/space.h"

namespace mycc {

// Fails the calling test when a point does not. Returns the number of checked points, `most` at most. Floats
// may differ by `tolerance`. With `decision`, only points with another than its first choice are checked.
int CheckPoints(const Workload& workload, const Sketch& sketch, const Target& target, double tolerance,
                int most = 12, const std::string& decision = "");

}  // namespace mycc
