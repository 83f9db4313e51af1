// Products of a few rows and a matrix: for the row rule of GPUs.
#pragma once

#include "tuner/space/part.h"

namespace mycc {

// The group is one such product, whose matrix is contiguous along the sum, and its epilogue.
bool IsGemv(const Anatomy& anatomy, const Group& group);
Part GemvPart(const Anatomy& anatomy, const Group& group, const Target& target);

}  // namespace mycc
