// Random graphs of what models are made of: convolutions, products, softmax, element-wise stages, transposes,
// slices, reshapes, reductions, and library calls. Pure.
#pragma once

#include <cstdint>

#include "codegen/graph/graph.h"

namespace mycc {

// The same seed gives the same graph. The last tensor is an output, and some of the others are.
Graph RandomGraph(uint64_t seed);

}  // namespace mycc
