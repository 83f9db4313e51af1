// Evaluates a graph tensor by tensor: the reference that compiled models are checked against. Slow. Pure.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "codegen/graph/graph.h"

namespace mycc {

// Inputs and outputs in the graph's order; outputs with bounded axes have their actual extents. The errors
// name the input or the tensor. Texts that are made are good until this thread makes others.
absl::StatusOr<std::vector<NDArray>> InterpretGraph(const Graph& graph, const std::vector<NDArray>& inputs);

}  // namespace mycc
