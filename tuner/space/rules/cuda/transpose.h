// Detects transposing stages and schedules them, for the GPU's elementwise rule.
#pragma once

#include "tuner/space/part.h"

namespace mycc {

// The read that makes a stage a transpose: contiguous along `axis`, another than the last, and strided along
// the last; both axes stand alone in an index. axis -1: there is none.
struct TransposedRead {
  int axis = -1;
  const ExprNode* load = nullptr;
  int axis_dim = -1, last_dim = -1;  // dimensions of the buffer that the two axes index
};
TransposedRead FindTransposedRead(const Stage& stage);

// REQUIRES: the anchor has such a read.
Part TransposePart(const Anatomy& anatomy, const Group& group, const Target& target);

}  // namespace mycc
