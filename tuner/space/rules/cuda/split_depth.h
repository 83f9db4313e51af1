// A product whose depth is split where there are few tiles: partial sums of its parts go to memory, and a
// second launch adds them up, always in the same order, and carries out the epilogue. Pure.
#pragma once

#include <string>
#include <vector>

#include "tuner/space/rules/cuda/tensor_core.h"

namespace mycc {

// The depth of one of `split` parts, whole tiles of bk; and the parts that this makes.
int64_t PartDepth(int64_t depth, int64_t split, int64_t bk);
int64_t PartsOf(int64_t depth, int64_t split, int64_t bk);
// Numbers of parts that are worth a try: while each still has several steps, and the `tiles` of a coarse grid
// leave SMs without work.
std::vector<int64_t> SplitsOf(int64_t depth, int64_t step, int64_t tiles, const Target& target);

// Makes the parts, each a matrix of its own; returns the block that computes them, with the stage's loops
// under its own name and loop `.v` over the parts.
std::string EmitParts(const Anatomy& anatomy, const TensorContraction& t, int64_t part_depth,
                      TraceBuilder* b);
// The launch that adds the parts up, four elements a thread, with the epilogue.
void EmitSumOfParts(const Anatomy& anatomy, const TensorContraction& t, TraceBuilder* b);

}  // namespace mycc
