// Checks that tests of the rules make of a space: its default and random points replay, verify, and mean what
// the workload means.
#pragma once

#include <string>

#include "tuner/space/space.h"

namespace mycc {

// Fails the test that calls it where a point does not; returns how many there were, `most` at most. Floats
// may differ by `tolerance`. With `decision`, of points only where it has more than its first choice.
int CheckPoints(const Workload& workload, const Sketch& sketch, const Target& target, double tolerance,
                int most = 12, const std::string& decision = "");

}  // namespace mycc
