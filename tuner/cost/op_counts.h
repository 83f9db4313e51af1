// Counts the operations of one instance of a block. Pure function.
#pragma once

#include "tuner/cost/nest.h"

namespace mycc {

// Index arithmetic inside loads is not counted: it is hoisted or strength-reduced, but for data-dependent
// indices.
OpCounts CountOps(const Block& block);

}  // namespace mycc
