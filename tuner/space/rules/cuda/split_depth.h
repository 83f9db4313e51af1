// Splits the depth of a GPU product (depth_parts.h) where there are few tiles: the parts' partial sums go to
// memory, and a second launch adds them up in a fixed order and computes the epilogue. Pure.
#pragma once

#include <string>
#include <vector>

#include "tuner/space/rules/cuda/tensor_core.h"
#include "tuner/space/rules/depth_parts.h"

namespace mycc {

// Numbers of parts that are worth a try: while each still has several steps, and the `tiles` of a coarse grid
// leave SMs without work.
std::vector<int64_t> SplitsOf(int64_t depth, int64_t step, int64_t tiles, const Target& target);

// The launch that adds the parts up, four elements a thread, with the epilogue.
void EmitSumOfParts(const Anatomy& anatomy, const TensorContraction& t, TraceBuilder* b);

}  // namespace mycc
