// Elementwise stages that go into their readers, because that repeats little work. Pure.
#pragma once

#include <vector>

#include "codegen/target/target.h"
#include "codegen/workload/workload.h"
#include "tuner/space/anatomy.h"

namespace mycc {

// Nodes, indices among them, to which a stage's expression may grow by what is inlined into it: in a chain of
// stages, each of which reads the one before it twice, the work doubles with every stage.
inline constexpr double kMostInlinedNodes = 1000;

// The stages, in order.
std::vector<int> CheapStages(const Anatomy& anatomy, const Target& target);

// The workload with these stages, in order, substituted into their readers; the other stages keep their
// tensors.
Workload WithoutStages(const Workload& workload, const std::vector<int>& stages);

}  // namespace mycc
