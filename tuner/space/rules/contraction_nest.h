// Writes the loops of a contraction on a CPU from the decided values: blocks, register tiles and copies of
// operands. Pure.
#pragma once

#include "tuner/space/rules/contraction_depth.h"
#include "tuner/space/rules/contraction_plan.h"

namespace mycc {

// How a padded (or otherwise computed) operand is provided.
enum PrologueAt : int64_t { kAtRoot = 0, kAtBlock = 1 };
// The loops over blocks; the columns' also around the image rows, whose products then share b's panel.
enum BlockOrder : int64_t { kRowsOutside = 0, kColumnsOutside = 1, kColumnsOutermost = 2 };
enum ParallelOver : int64_t { kNone = 0, kOuterBlock = 1, kBothBlocks = 2 };

DepthSteps StepsOf(const ContractionPlan& plan, const Values& v);

// REQUIRES: the values are legal together.
void EmitContraction(const ContractionPlan& plan, const Values& v, TraceBuilder* b);

}  // namespace mycc
