// Decides for mixed precision which tensors of a graph are stored in a narrow type, and which products take
// narrow operands. mixed_precision.cc rewrites the graph by it. Thread rule: immutable once built.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "codegen/graph/graph.h"

namespace mycc {

// Whether a stage only moves elements, computing nothing: each is a load or a literal, chosen by conditions.
bool IsMoveOfElements(const Stage& stage);
// The loads of a move, without those in its conditions.
std::vector<const ExprNode*> MovedLoads(const Expr& value);

class NarrowTensors {
 public:
  // `graph` must outlive the choice. REQUIRES: no dead nodes; its stages are those that kernels will have.
  NarrowTensors(const Graph& graph, DType narrow);

  // Whether a tensor that a stage or a reshape makes is stored narrow, for all its readers.
  bool IsStored(const Buffer& tensor) const { return stored_.count(tensor.get()) > 0; }
  // Whether the stage is a sum of products whose operands become narrow.
  bool IsNarrowProduct(const Stage& stage) const { return products_.count(stage.output.get()) > 0; }
  // Whether a tensor goes from one kernel to another, through memory.
  bool IsBetweenKernels(const Buffer& tensor) const { return between_.count(tensor.get()) > 0; }

 private:
  using Tensors = BufferSet;

  void FindTensorsBetweenKernels();
  void FindProducts();
  bool IsExact(double literal) const;
  bool Fits(const Buffer& tensor);
  bool ComputeFits(const Node& node);
  bool LiteralsFit(const Expr& expr) const;
  void LookAtReaders(const Node& node);
  void LookAtStage(const Stage& stage);
  void MarkSensitive(const Expr& expr, bool is_sensitive);
  bool IsChosen(const Stage& stage);

  const Graph& graph_;
  const DType narrow_;
  const std::unordered_map<const BufferNode*, size_t> maker_;
  Tensors between_, products_, stored_;
  Tensors pinned_;     // their type is fixed: outputs, what library calls read, and what only moves there
  Tensors sensitive_;  // rounding them would show in the result
  Tensors factors_;    // read by products
  std::unordered_map<const BufferNode*, bool> fits_;
};

}  // namespace mycc
