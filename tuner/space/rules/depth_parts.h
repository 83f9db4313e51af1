// Cuts the depth of a product's sum into parts with independent partial sums, for threads or thread blocks to
// share. The parts are added up at the end, always in the same order. Pure.
#pragma once

#include <string>

#include "tuner/space/part.h"

namespace mycc {

// The depth of one of `split` parts, whole multiples of `step`; and the parts that this makes.
int64_t PartDepth(int64_t depth, int64_t split, int64_t step);
int64_t PartsOf(int64_t depth, int64_t split, int64_t step);

// Makes parts of `length` along a stage's reduction axis, each a tensor of its own; returns the block that
// computes them, with the stage's loops under its own name and loop `.v` over the parts.
std::string EmitParts(const Anatomy& anatomy, int stage, int reduce_axis, int64_t length, TraceBuilder* b);

}  // namespace mycc
