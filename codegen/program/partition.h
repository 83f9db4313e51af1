// Cuts a graph into groups of stages, one kernel each. Around a contraction or a reduction over windows: the
// padding before it and what follows element by element. Around reductions over rows: all that shares the
// rows. All others: chains of element-wise stages. Pure.
#pragma once

#include <vector>

#include "codegen/program/graph_uses.h"

namespace mycc {

// In an order of execution. Constants and reshapes are in no group; stages of constants alone are repeated in
// each group that reads them. A library call is a group of its own.
std::vector<KernelGroup> PartitionGraph(const GraphUses& uses);
std::vector<KernelGroup> PartitionGraph(const Graph& graph);

}  // namespace mycc
