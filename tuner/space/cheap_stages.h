// Finds the elementwise stages that are cheap enough to be inlined into their readers. Pure.
#pragma once

#include <vector>

#include "codegen/target/target.h"
#include "codegen/workload/workload.h"
#include "tuner/space/anatomy.h"

namespace mycc {

// A stage's expression may grow to this many nodes by inlining, nodes of indices included. Without a limit,
// the work of a chain doubles with every stage that reads the one before it twice.
inline constexpr double kMostInlinedNodes = 1000;

// The stages, in order.
std::vector<int> CheapStages(const Anatomy& anatomy, const Target& target);

// The workload with these stages, in order, substituted into their readers; the other stages keep their
// tensors.
Workload WithoutStages(const Workload& workload, const std::vector<int>& stages);

}  // namespace mycc
