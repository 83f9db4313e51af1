// Properties of stages, as fusion and layout see them. Pure functions.
#pragma once

#include <vector>

#include "codegen/workload/workload.h"

namespace mycc {

enum class StageKind {
  kInjective,  // no reduction
  kRows,       // a reduction that reads whole rows: softmax, normalizations, means
  kHeavy,      // a contraction or a reduction over windows: what a kernel is built around
};
StageKind KindOf(const Stage& stage);

// Whether every read of `tensor` in the stage is at the stage's own axes, in order (an extent of 1 may be
// read at 0).
bool ReadsElementwise(const Stage& stage, const Buffer& tensor);

// For a stage that copies a tensor with its axes permuted: the source's dimension for each axis; empty
// otherwise.
std::vector<int> PermutationOf(const Stage& stage);

}  // namespace mycc
