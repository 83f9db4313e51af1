// The depth of a contraction shared among threads, where rows and columns are too few for them: each part has
// its partial sums, and a nest of its own adds the parts up and carries out the epilogue.
//
//   parallel parts:
//     partial[part, m, n] = sum over the part         (the contraction's nest)
//   for m, n.0: acc = 0
//     for parts: acc += partial[part, m, n]
//     y = epilogue(acc)
//
// How many parts there are is the schedule's decision, not the running threads': sums are the same however
// many of them there are. Pure.
#pragma once

#include <functional>
#include <vector>

#include "tuner/space/rules/contraction_plan.h"

namespace mycc {

// How the innermost reduction is cut besides: blocks of `kc` steps, unless that is all of it, and
// instructions that take `step` at once.
struct DepthSteps {
  int64_t kc, step;
};

// Numbers of parts that are worth a try where `tiles` register tiles leave threads without work.
std::vector<int64_t> DepthSplits(const ContractionPlan& plan, int64_t tiles);
// Whether there are that many parts, each with a whole block of the depth.
bool FitsSplit(const ContractionPlan& plan, int64_t split, const DepthSteps& steps);
// The one of `splits` that is done first when the products of a thread take `cycles(split)`.
int64_t BestSplit(const ContractionPlan& plan, const std::vector<int64_t>& splits, const DepthSteps& steps,
                  const std::function<double(int64_t)>& cycles);

// Makes the parts; returns the plan of their nest, whose outermost loop is over the parts.
ContractionPlan EmitSplit(const ContractionPlan& plan, int64_t split, const DepthSteps& steps,
                          TraceBuilder* b);
// The nest that adds them up.
void EmitSumOfParts(const ContractionPlan& plan, int64_t split, TraceBuilder* b);

}  // namespace mycc
