#include "tests/onnx/small_models.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/graph/interpret.h"
#include "codegen/onnx/old_forms.h"
#include "codegen/onnx/operators.h"

namespace mycc::onnx {

NDArray Floats(std::vector<int64_t> shape, const std::vector<double>& elements) {
  NDArray array = NDArray::Zeros(DType::kF32, std::move(shape));
  for (size_t i = 0; i < elements.size(); ++i) array.Set(i, Scalar{elements[i], 0});
  return array;
}

NDArray Integers(std::vector<int64_t> shape, const std::vector<int64_t>& elements) {
  NDArray array = NDArray::Zeros(DType::kI64, std::move(shape));
  for (size_t i = 0; i < elements.size(); ++i) array.Set(i, Scalar{0, elements[i]});
  return array;
}

NDArray Bool(bool value) {
  NDArray array = NDArray::Zeros(DType::kBool, {});
  array.Set(0, Scalar{0, value ? 1 : 0});
  return array;
}

NDArray Counting(std::vector<int64_t> shape) {
  NDArray array = NDArray::Zeros(DType::kF32, std::move(shape));
  for (int64_t i = 0; i < array.num_elements(); ++i) array.Set(i, Scalar{static_cast<double>(i), 0});
  return array;
}

OnnxAttribute IntOf(int64_t value) {
  OnnxAttribute attribute;
  attribute.i = value;
  return attribute;
}

OnnxAttribute IntsOf(std::vector<int64_t> values) {
  OnnxAttribute attribute;
  attribute.ints = std::move(values);
  return attribute;
}

OnnxAttribute StringOf(std::string value) {
  OnnxAttribute attribute;
  attribute.s = std::move(value);
  return attribute;
}

OnnxAttribute GraphOf(OnnxGraph graph) {
  OnnxAttribute attribute;
  attribute.graph = std::make_shared<const OnnxGraph>(std::move(graph));
  return attribute;
}

OnnxNode NodeOf(std::string op, std::vector<std::string> inputs, std::vector<std::string> outputs,
                OnnxAttributes attributes) {
  OnnxNode node;
  node.op = std::move(op);
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  node.attributes = std::move(attributes);
  return node;
}

OnnxGraph BodyGraph(const std::vector<std::string>& inputs, std::vector<OnnxNode> nodes,
                    const std::vector<std::string>& outputs) {
  OnnxGraph graph;
  graph.nodes = std::move(nodes);
  for (const auto& [names, declared] :
       {std::pair(&inputs, &graph.inputs), std::pair(&outputs, &graph.outputs)}) {
    for (const std::string& name : *names) {
      declared->emplace_back();
      declared->back().name = name;
    }
  }
  return graph;
}

SmallModel& SmallModel::Input(const std::string& name, NDArray value) {
  scope_[name] = {builder_.AddInput(name, value.dtype, value.shape), NodeImport::TypeNumber(value.dtype)};
  inputs_.push_back(std::move(value));
  return *this;
}

SmallModel& SmallModel::Known(const std::string& name, NDArray value) {
  const int type = NodeImport::TypeNumber(value.dtype);
  scope_[name] = {builder_.AddConstant(std::move(value)), type};
  return *this;
}

SmallModel& SmallModel::Declare(const std::string& output, std::vector<int64_t> shape) {
  declared_[output] = std::move(shape);
  return *this;
}

SmallModel& SmallModel::Add(OnnxNode node) {
  if (status_.ok()) status_ = Nodes({std::move(node)}, &scope_);
  return *this;
}

absl::Status SmallModel::Nodes(const std::vector<OnnxNode>& nodes, Scope* scope) {
  for (const OnnxNode& node : nodes) {
    std::vector<TypedTensor> inputs;
    for (const std::string& name : node.inputs) inputs.push_back((*scope)[name]);
    const auto subgraph =
        [&](const OnnxGraph& graph,
            const std::vector<TypedTensor>& values) -> absl::StatusOr<std::vector<TypedTensor>> {
      Scope inner = *scope;
      for (size_t i = 0; i < values.size(); ++i) inner[graph.inputs[i].name] = values[i];
      MYCC_RETURN_IF_ERROR(Nodes(graph.nodes, &inner));
      std::vector<TypedTensor> results;
      for (const DeclaredValue& output : graph.outputs) results.push_back(inner[output.name]);
      return results;
    };
    const Operator* op = FindOperator(node.domain, node.op);
    if (op == nullptr) return absl::NotFoundError(absl::StrCat("no operator ", node.op));
    MYCC_ASSIGN_OR_RETURN(const auto new_form, InNewForm(node, opset_, &builder_, &inputs));
    NodeImport import(new_form ? *new_form : node, opset_, std::move(inputs), &builder_, subgraph);
    std::vector<std::optional<std::vector<int64_t>>> declared(node.outputs.size());
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (const auto at = declared_.find(node.outputs[i]); at != declared_.end()) declared[i] = at->second;
    }
    import.Declare(std::move(declared));
    MYCC_RETURN_IF_ERROR(op->import(import));
    MYCC_RETURN_IF_ERROR(builder_.status());
    for (size_t i = 0; i < node.outputs.size(); ++i) (*scope)[node.outputs[i]] = import.outputs()[i];
  }
  return absl::OkStatus();
}

absl::StatusOr<Graph> SmallModel::Import(const std::vector<std::string>& outputs) {
  MYCC_RETURN_IF_ERROR(status_);
  for (const std::string& output : outputs) builder_.AddOutput(output, scope_[output].tensor);
  Graph graph = builder_.Finish();
  MYCC_RETURN_IF_ERROR(VerifyGraph(graph));
  return graph;
}

absl::StatusOr<std::vector<double>> SmallModel::Run(const std::string& output, std::vector<int64_t>* shape) {
  MYCC_ASSIGN_OR_RETURN(const Graph graph, Import({output}));
  MYCC_ASSIGN_OR_RETURN(const std::vector<NDArray> results, InterpretGraph(graph, inputs_));
  const NDArray& result = results[0];
  std::vector<double> elements;
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    const Scalar number = result.Get(i);
    elements.push_back(IsFloat(result.dtype) ? number.f : static_cast<double>(number.i));
  }
  if (shape != nullptr) *shape = result.shape;
  return elements;
}

bool SmallModel::IsKnown(const std::string& name) const {
  return builder_.ValueOf(scope_.at(name).tensor) != nullptr;
}

}  // namespace mycc::onnx
