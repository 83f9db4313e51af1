// What tests of the rules do with a space: its default and random points replay, verify, and mean what the
// workload means.
#pragma once

#include "tuner/space/space.h"

namespace mycc {

// Fails the test that calls it where a point does not; returns how many there were, twelve at most. Floats
// may differ by `tolerance`.
int CheckPoints(const Workload& workload, const Sketch& sketch, const Target& target, double tolerance);

}  // namespace mycc
