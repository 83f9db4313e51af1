// Cuts a graph into groups of stages, one kernel each. Chains of stages along one axis, such as attention
// (codegen/workload/stream_chain.h), where the target computes them in one pass. Around a contraction or a
// reduction over windows: the padding before it and what follows element by element. Around reductions over
// rows: all that shares the rows. All others: chains of element-wise stages. Pure.
#pragma once

#include <functional>
#include <vector>

#include "codegen/program/graph_uses.h"

namespace mycc {

// Whether the target computes the chain that a workload is in one pass. Null: it computes none so. It is
// asked once for equal workloads.
using StreamTest = std::function<bool(const Workload& workload)>;

// In an order of execution. Constants and reshapes are in no group; stages of constants alone are repeated in
// each group that reads them. A library call is a group of its own.
std::vector<KernelGroup> PartitionGraph(const GraphUses& uses, const StreamTest& streams = {});
std::vector<KernelGroup> PartitionGraph(const Graph& graph, const StreamTest& streams = {});

// The nodes of one group as the groups that they make where chains are none.
std::vector<KernelGroup> PartitionNodes(const GraphUses& uses, const std::vector<size_t>& nodes);

}  // namespace mycc
