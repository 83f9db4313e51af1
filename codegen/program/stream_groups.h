// The chains of stages along one axis (codegen/workload/stream_chain.h) in a graph. Pure.
#pragma once

#include <vector>

#include "codegen/program/graph_uses.h"

namespace mycc {

// The nodes of each chain, ascending; no node is in two. Dimensions of one element hide none, and reshapes
// end them.
std::vector<std::vector<size_t>> StreamChainsOf(const GraphUses& uses);

}  // namespace mycc
