// Changes the order of the dimensions in which tensors of a graph are stored. Stages say what they read by
// indices, so a stage reads and writes another order at no cost; only inputs, outputs and library calls hold
// on to theirs. Pure.
#pragma once

#include <unordered_map>
#include <vector>

#include "codegen/graph/graph.h"

namespace mycc {

// Dimension d of the stored tensor is dimension permutation[d] of the tensor.
using Permutations = std::unordered_map<const BufferNode*, std::vector<int>>;

// Stores tensors in another order. REQUIRES: each is defined by a stage, a constant, or a reshape whose
// source is permuted so that the reshape stays one. Where a reshape, a library call or an output needs the
// old order, a copy is made.
Graph PermuteTensors(Graph graph, const Permutations& permutations);

// Whether the permuted tensor has its elements in the same row-major order: dimensions of one element moved.
bool KeepsOrder(const std::vector<int64_t>& shape, const std::vector<int>& permutation);

}  // namespace mycc
