// Small ONNX models in memory: a list of nodes over named tensors, imported node by node. For tests of
// operators.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/graph/builder.h"
#include "codegen/onnx/model.h"
#include "codegen/onnx/node_import.h"

namespace mycc::onnx {

// A tensor of floats or of i64, by its elements in row-major order.
NDArray Floats(std::vector<int64_t> shape, const std::vector<double>& elements);
NDArray Integers(std::vector<int64_t> shape, const std::vector<int64_t>& elements);
NDArray Bool(bool value);
// 0, 1, 2, ... as floats.
NDArray Counting(std::vector<int64_t> shape);

OnnxAttribute IntOf(int64_t value);
OnnxAttribute IntsOf(std::vector<int64_t> values);
OnnxAttribute StringOf(std::string value);
OnnxAttribute GraphOf(OnnxGraph graph);

OnnxNode NodeOf(std::string op, std::vector<std::string> inputs, std::vector<std::string> outputs,
                OnnxAttributes attributes = {});
// A graph of tensors without declared shapes.
OnnxGraph BodyGraph(const std::vector<std::string>& inputs, std::vector<OnnxNode> nodes,
                    const std::vector<std::string>& outputs);

class SmallModel {
 public:
  explicit SmallModel(int64_t opset) : opset_(opset), builder_("model") {}

  SmallModel& Input(const std::string& name, NDArray value);
  SmallModel& Known(const std::string& name, NDArray value);
  // The shape that the model declares for an output of its own.
  SmallModel& Declare(const std::string& output, std::vector<int64_t> shape);
  SmallModel& Add(OnnxNode node);

  // The graph, or the first node's error.
  absl::StatusOr<Graph> Import(const std::vector<std::string>& outputs);
  // The elements of one tensor, computed by the interpreter; every test's tensors hold small numbers.
  absl::StatusOr<std::vector<double>> Run(const std::string& output, std::vector<int64_t>* shape = nullptr);
  // Whether the importer knows the tensor's value.
  bool IsKnown(const std::string& name) const;

 private:
  using Scope = std::map<std::string, TypedTensor>;
  absl::Status Nodes(const std::vector<OnnxNode>& nodes, Scope* scope);

  const int64_t opset_;
  GraphBuilder builder_;
  Scope scope_;
  std::map<std::string, std::vector<int64_t>> declared_;
  std::vector<NDArray> inputs_;
  absl::Status status_;
};

}  // namespace mycc::onnx
