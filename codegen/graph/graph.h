// A whole model: a graph of tensors, each defined by an input, a constant, a stage of the tensor language, a
// reshape, or a call of a library kernel. It knows nothing of the file format that it was read from.
//
// Invariants (established by GraphBuilder and checked by VerifyGraph): nodes are in topological order; every
// tensor is defined once; every read of a stage is provably inside its tensor. Thread rule: a value.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "codegen/workload/reference.h"
#include "codegen/workload/workload.h"

namespace mycc {

// An input or output of a model, under the model's own name for it, which need be no identifier.
struct NamedTensor {
  std::string name;
  Buffer tensor;
  bool is_text = false;  // its elements, of type u64, are handles of texts (library_kernels.h)
  // The axes of an output whose extents are known when it is computed. The tensor's shape has the most that
  // they can be. The first elements are those of the smaller tensor, compact.
  std::vector<int> bounded = {};
  // The extent of a bounded axis, an i64 of rank 0. These outputs are behind all others, in the order of the
  // outputs and of their axes; they tell a caller the shapes and are no tensors of the model.
  bool is_extent = false;
};

using Constant = std::shared_ptr<const NDArray>;

// The elements of `source` in row-major order, from number `offset` on, under another shape. Only the last
// pass, graph.merge_products, makes reshapes of less than all elements.
struct Reshape {
  Buffer source;
  int64_t offset = 0;
};

// A computation that no stage can say: library_kernels.h has the functions.
struct LibraryCall {
  std::string function;
  std::vector<int64_t> attributes;
  std::vector<Buffer> inputs;
};

struct Node {
  std::vector<Buffer> outputs;  // one; a library call may have more
  std::variant<Constant, Stage, Reshape, LibraryCall> made_by;
  std::vector<std::string> origins;  // the model's nodes that it came from, for people
};

struct Graph {
  std::string name;
  std::vector<NamedTensor> inputs, outputs;
  std::vector<Node> nodes;
};

// The tensors that a node reads, each once, in the order of the first read.
std::vector<Buffer> ReadsOf(const Node& node);
// The tensors that an expression reads, each once.
std::vector<Buffer> TensorsIn(const Expr& expr);

// The node that defines each tensor, by its number; inputs are not in it.
std::unordered_map<const BufferNode*, size_t> Definitions(const Graph& graph);

// Internal when an invariant is broken; the error names the tensor.
absl::Status VerifyGraph(const Graph& graph);

// One line for each node, in the language's spelling, for MYCC_PRINT_AFTER and explanations.
std::string PrintGraph(const Graph& graph);

}  // namespace mycc
