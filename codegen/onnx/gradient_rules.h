// The rules of the operator Gradient: how the gradients of a node's inputs are made of those of its outputs.
// Internal to this folder. Thread rule: functions are re-entrant.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "absl/status/status.h"
#include "codegen/onnx/gradient_nodes.h"
#include "codegen/onnx/node_import.h"

namespace mycc::onnx {

// A node that is differentiated, as its rule sees it.
class GradientNode {
 public:
  // `import` is the node with its inputs. `needed` are the names that gradients are wanted of.
  GradientNode(const OnnxNode& node, const NodeImport& import, NodeWriter* writer,
               const std::unordered_set<std::string>& needed,
               std::unordered_map<std::string, Term>* gradients)
      : n(import), node_(node), writer_(writer), needed_(needed), gradients_(gradients) {}

  const NodeImport& n;  // for attributes, shapes, and errors

  NodeWriter& writer() { return *writer_; }
  Term In(size_t i) { return writer_->Named(node_.inputs[i]); }
  Term Out(size_t i = 0) { return writer_->Named(node_.outputs[i]); }
  size_t num_outputs() const { return node_.outputs.size(); }
  // The gradient of an output: zeros where none reaches it.
  Term Gradient(size_t i = 0);
  bool Reaches(size_t i) const { return i < node_.outputs.size() && gradients_->count(node_.outputs[i]) > 0; }
  bool Needs(size_t i) const { return i < node_.inputs.size() && needed_.count(node_.inputs[i]) > 0; }
  // Adds to the gradient of an input. The gradient may have the shape that the input is broadcast to.
  void Give(size_t i, const Term& gradient);

 private:
  const OnnxNode& node_;
  NodeWriter* const writer_;
  const std::unordered_set<std::string>& needed_;
  std::unordered_map<std::string, Term>* const gradients_;
};

using GradientRule = absl::Status (*)(GradientNode& d);

// The rule of an operator of ONNX's own domain; null without one.
GradientRule FindGradientRule(const std::string& op);

// gradient.cc: the operator.
absl::Status ImportGradient(NodeImport& n);

// gradient_of_products.cc.
absl::Status GradientOfMatMul(GradientNode& d);
absl::Status GradientOfGemm(GradientNode& d);
absl::Status GradientOfConv(GradientNode& d);
absl::Status GradientOfAveragePool(GradientNode& d);

// gradient_of_layers.cc.
absl::Status GradientOfBatchNormalization(GradientNode& d);
absl::Status GradientOfGather(GradientNode& d);
absl::Status GradientOfLayerNormalization(GradientNode& d);
absl::Status GradientOfLoss(GradientNode& d);
absl::Status GradientOfMaxPool(GradientNode& d);
absl::Status GradientOfSlice(GradientNode& d);

}  // namespace mycc::onnx
