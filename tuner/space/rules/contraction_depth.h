// Splits the depth of a contraction among threads, for outputs with too few rows and columns to share.
// Each part has its own partial sums; a second loop nest adds them up and computes the epilogue.
//
//   parallel parts:
//     partial[part, m, n] = sum over the part         (the contraction's nest)
//   for m, n.0: acc = 0
//     for parts: acc += partial[part, m, n]
//     y = epilogue(acc)
//
// The schedule fixes the number of parts, so the sums are the same for any number of running threads.
// Pure.
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
