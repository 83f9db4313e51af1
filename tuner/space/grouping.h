// Divides the stages of a workload into groups that one rule each schedules.
//
//   0. if wanted, chains along one axis become groups (stream_chain.h); the chain's sum is the anchor
//   1. reductions become anchors: contractions and tiles take the elementwise stages that feed them alone
//      (padding) and follow them alone (epilogue); row reductions take all stages on the same rows
//   2. every stage that is left is an elementwise anchor
//
// Pure.
#pragma once

#include <utility>
#include <vector>

#include "tuner/space/part.h"
#include "tuner/space/stage_class.h"

namespace mycc {

// Every stage is in one group; in the order of their anchors.
using Groups = std::vector<std::pair<Group, StageClass>>;
Groups GroupStages(const Anatomy& anatomy, const Target& target, bool streams = false);

}  // namespace mycc
