#include "codegen/onnx/declared_shapes.h"

#include <unordered_set>

namespace mycc::onnx {
namespace {

// Whether the output has the shape of the first input, whatever this is.
bool KeepsShape(const OnnxNode& node) {
  static const auto* const operators = new std::unordered_set<std::string>{
      "Abs", "Cast", "CastLike", "Ceil",  "Exp",  "Floor", "Identity", "Log",
      "Neg", "Not",  "Relu",     "Round", "Sign", "Sqrt",  "Tanh",     "Sigmoid"};
  return node.domain.empty() && operators->count(node.op) > 0 && !node.inputs.empty() &&
         node.outputs.size() == 1;
}

}  // namespace

std::unordered_map<std::string, std::vector<int64_t>> DeclaredShapesOf(const OnnxGraph& graph) {
  std::unordered_map<std::string, std::vector<int64_t>> shapes;
  for (const DeclaredValue& output : graph.outputs) {
    std::vector<int64_t> shape;
    bool is_fixed = output.has_shape;
    for (const Dimension& dimension : output.shape) {
      shape.push_back(dimension.extent);
      is_fixed &= dimension.extent >= 0;
    }
    if (is_fixed) shapes.emplace(output.name, std::move(shape));
  }
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (!KeepsShape(*node)) continue;
    const auto shape = shapes.find(node->outputs[0]);
    if (shape == shapes.end()) continue;
    std::vector<int64_t> same = shape->second;
    shapes.emplace(node->inputs[0], std::move(same));
  }
  return shapes;
}

}  // namespace mycc::onnx
