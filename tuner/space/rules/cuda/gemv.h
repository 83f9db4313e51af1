// Products of a few rows and a matrix: a part that the GPU's row rule uses.
#pragma once

#include "tuner/space/part.h"

namespace mycc {

// The group is one such product, whose matrix is contiguous along the sum, and its epilogue.
bool IsGemv(const Anatomy& anatomy, const Group& group);
Part GemvPart(const Anatomy& anatomy, const Group& group, const Target& target);

}  // namespace mycc
