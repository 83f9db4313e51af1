// The parts of an attention, and the operators of its family that have files of their own. Internal to this
// folder. Thread rule: pure functions.
#pragma once

#include <vector>

#include "codegen/graph/builder.h"
#include "codegen/onnx/node_import.h"

namespace mycc::onnx {

// Queries, keys or values: a vector for each element of the batch, head and position. The tensor is
// [batch, head, position, element], or [batch, position, head, element].
struct HeadVectors {
  Buffer tensor;
  bool is_position_first = false;

  int64_t batch() const { return tensor->shape[0]; }
  int64_t heads() const { return tensor->shape[is_position_first ? 2 : 1]; }
  int64_t positions() const { return tensor->shape[is_position_first ? 1 : 2]; }
  int64_t size() const { return tensor->shape[3]; }
  Expr At(const Expr& b, const Expr& head, const Expr& position, const Expr& element) const;
};

// An input of rank 4, or of rank 3 with its heads side by side in the last axis.
absl::StatusOr<HeadVectors> HeadVectorsOf(const NodeImport& n, GraphBuilder& g, size_t i, int64_t heads);
// [batch, head, position, element].
Buffer HeadFirst(GraphBuilder& g, const HeadVectors& vectors);

// Refuses vectors that no attention can be made of. A head of keys serves as many heads of queries that
// follow each other as there are more of these.
absl::Status CheckHeads(const NodeImport& n, const HeadVectors& q, const HeadVectors& k,
                        const HeadVectors& v);

// Scaled products of queries and keys, in f32 or f64: [batch, head, query, key], or, where several heads of
// queries share a head of keys, [batch, head of keys, head of its queries, query, key]. Without reshapes in
// between, they, a softmax and WeightedValues are one chain of stages (codegen/workload/stream_chain.h).
Buffer ProductsOfHeads(GraphBuilder& g, const HeadVectors& q, const HeadVectors& k, double scale);
// Sums of values with `weights`, which are as the products, in the type `dtype`: [batch, head, query,
// element], or where the position is first [batch, query, all heads' elements].
Buffer WeightedValues(GraphBuilder& g, const Buffer& weights, const HeadVectors& v, bool is_position_first,
                      DType dtype);

absl::Status RotaryEmbedding(NodeImport& n);
absl::Status LinearAttention(NodeImport& n);
absl::Status CausalConvWithState(NodeImport& n);

}  // namespace mycc::onnx
