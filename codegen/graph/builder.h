// Builds a graph tensor by tensor. A tensor that depends on constants alone, and is small, is computed at
// once, so that the arithmetic on shapes that exporters write is gone when a model has been read.
//
// A stage that breaks a rule of the language makes the builder fail for good: status() tells the first
// failure, so that callers need not look at each step. Thread rule: thread-compatible.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "codegen/graph/graph.h"

namespace mycc {

using Axes = std::vector<Expr>;

class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name) { graph_.name = std::move(name); }
  // Goes on with a graph: its inputs, and none of its nodes.
  static GraphBuilder Rewriting(const Graph& graph);

  Buffer AddInput(const std::string& name, DType dtype, std::vector<int64_t> shape, bool is_text = false);
  Buffer AddConstant(Constant value);
  Buffer AddConstant(NDArray value) { return AddConstant(std::make_shared<const NDArray>(std::move(value))); }
  // A constant of rank 0, and one of rank 1.
  Buffer Number(DType dtype, double value);
  Buffer Ints(const std::vector<int64_t>& values);

  // The tensor of this shape whose elements are `value` of their indices. Its type is the value's.
  Buffer Map(const std::vector<int64_t>& shape, const std::function<Expr(const Axes&)>& value);
  // The same reduced over axes of the extents `reduced`. An argmax or argmin gives i32.
  Buffer Reduce(ReduceOp op, const std::vector<int64_t>& shape, const std::vector<int64_t>& reduced,
                const std::function<Expr(const Axes&, const Axes&)>& value);
  Buffer AddReshape(const Buffer& source, std::vector<int64_t> shape);
  Buffer Cast(const Buffer& source, DType dtype);
  std::vector<Buffer> Call(const std::string& function, std::vector<int64_t> attributes,
                           std::vector<Buffer> inputs,
                           const std::vector<std::pair<DType, std::vector<int64_t>>>& outputs);
  // Handles of constant texts, which are never part of a constant: addresses are known when a model runs.
  Buffer AddTexts(const std::vector<std::string>& texts, std::vector<int64_t> shape);
  void AddOutput(const std::string& name, const Buffer& tensor) { AddOutput({name, tensor}); }
  void AddOutput(NamedTensor output) { graph_.outputs.push_back(std::move(output)); }
  // A node as it is; its constants are folded.
  void AddNode(Node node);

  // The value of a constant, or null.
  const NDArray* ValueOf(const Buffer& tensor) const;
  // The names of the graph's inputs that the tensor depends on, in the graph's order; none where one of them
  // has texts, whose values are never given.
  std::vector<std::string> InputsOf(const Buffer& tensor) const;

  // The origin of the nodes that are added from here on.
  void SetOrigins(std::vector<std::string> origins) { origins_ = std::move(origins); }

  const absl::Status& status() const { return status_; }
  void Fail(absl::Status status) { status_.Update(status); }

  // The graph, without the nodes that no output needs. Takes it from the builder.
  Graph Finish();

 private:
  Buffer AddStage(Stage stage);
  bool MayFold(int64_t elements);
  bool Fold(const Stage& stage, Buffer* folded);
  bool FoldCall(const LibraryCall& call, std::vector<Buffer>* outputs);
  std::string FreshName() { return "v" + std::to_string(next_name_++); }

  Graph graph_;
  std::unordered_map<const BufferNode*, Constant> constants_;
  std::unordered_map<const BufferNode*, Buffer> reshaped_;  // the source of each reshape
  std::vector<std::string> origins_;
  int64_t next_name_ = 0;
  int64_t foldable_ = int64_t{1} << 27;  // elements that foldings may still compute or read: seconds
  absl::Status status_;
};

// A read of `tensor` where it is broadcast to a shape of the axes: aligned at the last axis, extents of 1
// repeat.
Expr BroadcastLoad(const Buffer& tensor, const Axes& axes);

// Removes the nodes that no output needs.
void RemoveDeadNodes(Graph* graph);

int64_t ElementsOf(const std::vector<int64_t>& shape);

}  // namespace mycc
