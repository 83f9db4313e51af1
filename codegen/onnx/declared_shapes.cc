#include "codegen/onnx/declared_shapes.h"

#include <unordered_set>

namespace mycc::onnx {
namespace {

// Whether the output has the shape of the first input, whatever this is.
bool KeepsShape(const OnnxNode& node) {
  static const auto* const operators = new std::unordered_set<std::string>{
      "Abs", "Cast", "CastLike", "Ceil",  "Cos",     "Exp",  "Floor", "Identity", "Log",
      "Neg", "Not",  "Relu",     "Round", "Sigmoid", "Sign", "Sin",   "Sqrt",     "Tanh"};
  return node.domain.empty() && operators->count(node.op) > 0 && !node.inputs.empty() &&
         node.outputs.size() == 1;
}

bool IsArithmeticOfTwo(const OnnxNode& node) {
  return node.domain.empty() &&
         (node.op == "Add" || node.op == "Sub" || node.op == "Mul" || node.op == "Div") &&
         node.inputs.size() == 2 && node.outputs.size() == 1;
}

// The values of a graph in classes of one shape. The name of a class is that of its first value.
class ShapeClasses {
 public:
  explicit ShapeClasses(const OnnxGraph& graph) {
    for (const DeclaredValue& input : graph.inputs) {
      if (input.kind == "tensor" && input.has_shape && input.shape.empty()) scalars_.insert(input.name);
    }
    for (const auto& [name, constant] : graph.initializers) {
      if (constant.value != nullptr && constant.value->shape.empty()) scalars_.insert(name);
    }
    for (const OnnxNode& node : graph.nodes) Add(node);
  }

  std::string ClassOf(const std::string& name) const {
    const auto at = classes_.find(name);
    return at == classes_.end() ? name : at->second;
  }
  // The values that are not the first of their class, with the class.
  const std::unordered_map<std::string, std::string>& others() const { return classes_; }

 private:
  void Add(const OnnxNode& node) {
    if (IsScalarConstant(node)) {
      scalars_.insert(node.outputs[0]);
    } else if (KeepsShape(node)) {
      Join(node.outputs[0], node.inputs[0]);
    } else if (IsArithmeticOfTwo(node)) {
      const std::string &a = node.inputs[0], &b = node.inputs[1];
      if (scalars_.count(b) || ClassOf(a) == ClassOf(b)) {
        Join(node.outputs[0], a);
      } else if (scalars_.count(a)) {
        Join(node.outputs[0], b);
      }
    }
  }

  void Join(const std::string& name, const std::string& with) {
    if (scalars_.count(with)) scalars_.insert(name);
    classes_[name] = ClassOf(with);
  }

  static bool IsScalarConstant(const OnnxNode& node) {
    if (!node.domain.empty() || node.op != "Constant" || node.outputs.size() != 1) return false;
    if (node.attributes.count("value_int") || node.attributes.count("value_float")) return true;
    const auto at = node.attributes.find("value");
    return at != node.attributes.end() && at->second.tensor.value != nullptr &&
           at->second.tensor.value->shape.empty();
  }

  std::unordered_map<std::string, std::string> classes_;
  std::unordered_set<std::string> scalars_;  // of rank 0
};

}  // namespace

std::unordered_map<std::string, std::vector<int64_t>> DeclaredShapesOf(const OnnxGraph& graph) {
  const ShapeClasses classes(graph);
  std::unordered_map<std::string, std::vector<int64_t>> shapes;
  for (const DeclaredValue& output : graph.outputs) {
    std::vector<int64_t> shape;
    bool is_fixed = output.kind == "tensor" && output.has_shape;
    for (const Dimension& dimension : output.shape) {
      shape.push_back(dimension.extent);
      is_fixed &= dimension.extent >= 0;
    }
    if (!is_fixed) continue;
    shapes.emplace(classes.ClassOf(output.name), shape);
    shapes.emplace(output.name, std::move(shape));
  }
  for (const auto& [name, first] : classes.others()) {
    const auto shape = shapes.find(first);
    if (shape == shapes.end()) continue;
    std::vector<int64_t> same = shape->second;
    shapes.emplace(name, std::move(same));
  }
  return shapes;
}

}  // namespace mycc::onnx
