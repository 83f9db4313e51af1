#include "codegen/onnx/importer.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <optional>
#include <set>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "codegen/onnx/check_model.h"
#include "codegen/onnx/container_values.h"
#include "codegen/onnx/declared_shapes.h"
#include "codegen/onnx/known_inputs.h"
#include "codegen/onnx/node_import.h"
#include "codegen/onnx/nodes_around.h"
#include "codegen/onnx/old_forms.h"
#include "codegen/onnx/operators.h"
#include "codegen/onnx/texts.h"
#include "codegen/workload/check.h"

namespace mycc {
namespace onnx {
namespace {

constexpr int kMostCallDepth = 64;                // of functions and graphs inside one another
constexpr int64_t kMostNodes = int64_t{1} << 18;  // with those of each call of a function or a graph

// The values of a graph while it is read; names of the graphs around it are seen too.
struct Values {
  const Values* around = nullptr;
  std::unordered_map<std::string, TypedTensor> tensors;
  std::vector<ImportedNode> nodes;                 // imported so far
  std::unordered_map<std::string, size_t> makers;  // in `nodes`, by output; the first one
  std::deque<OnnxNode> added;                      // those of them that are in no file

  void AddNode(const OnnxNode* node, const Opsets* opsets) {
    for (const std::string& output : node->outputs) makers.emplace(output, nodes.size());
    nodes.push_back({node, opsets});
  }

  const TypedTensor* Find(const std::string& name) const {
    for (const Values* values = this; values != nullptr; values = values->around) {
      const auto at = values->tensors.find(name);
      if (at != values->tensors.end()) return &at->second;
    }
    return nullptr;
  }
};

// The name of a node, or that of its first output.
const std::string& NameOf(const OnnxNode& node) {
  return node.name.empty() && !node.outputs.empty() ? node.outputs[0] : node.name;
}

std::string Label(const OnnxNode& node) { return absl::StrCat("node `", NameOf(node), "` (", node.op, ")"); }

absl::Status At(const OnnxNode& node, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(Label(node), ": ", std::string(status.message())));
}

absl::Status DefinedTwice(const std::string& name) {
  return absl::InvalidArgumentError(absl::StrCat("`", name, "` is defined twice"));
}

// The end of a refusal to compute on with a size that data decide.
std::string SizeProblem(const TypedTensor& tensor) {
  return absl::StrCat("has a size that ", tensor.size->maker,
                      " takes from its data; to compute on with such a size is not supported; there ",
                      tensor.size->why);
}

// Refuses inputs of kinds that the operator does not take.
absl::Status CheckInputs(const Operator& op, const std::vector<TypedTensor>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool takes_text = op.text_inputs == kTextAnywhere || (i < 32 && (op.text_inputs >> i & 1) != 0);
    if (inputs[i].IsText() && !takes_text)
      return absl::UnimplementedError(
          absl::StrCat("input ", i, " is a tensor of strings, which are not supported here"));
    if (inputs[i].size != nullptr && !op.takes_data_size)
      return absl::UnimplementedError(absl::StrCat("input ", i, " ", SizeProblem(inputs[i])));
    if (inputs[i].elements != nullptr && !op.takes_sequences)
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " is ", TypeText(inputs[i]), "; expected a tensor"));
  }
  return absl::OkStatus();
}

class Importer {
 public:
  Importer(const OnnxModel& model, GraphBuilder* builder) : model_(model), builder_(builder) {}

  absl::StatusOr<std::vector<TypedTensor>> Run(const OnnxGraph& graph, const std::vector<TypedTensor>& inputs,
                                               const Values* around) {
    if (++depth_ > kMostCallDepth) return absl::InvalidArgumentError("graphs are nested too deeply");
    if (depth_ == 1) declared_ = DeclaredShapesOf(graph);
    Values values{around, {}};
    for (const auto& [name, constant] : graph.initializers) Define(&values, name, constant);
    for (size_t i = 0; i < inputs.size() && i < graph.inputs.size(); ++i)
      values.tensors[graph.inputs[i].name] = inputs[i];
    MYCC_RETURN_IF_ERROR(Nodes(graph.nodes, model_.opsets, &values));
    std::vector<TypedTensor> outputs;
    for (const DeclaredValue& output : graph.outputs) {
      const TypedTensor* value = values.Find(output.name);
      if (value == nullptr || !value->IsThere())
        return absl::InvalidArgumentError(absl::StrCat("nothing defines the output `", output.name, "`"));
      if (around != nullptr && value->IsText())
        return absl::UnimplementedError(absl::StrCat(
            "output `", output.name, "` of a graph inside the model: strings are not supported here"));
      if (around != nullptr && value->size != nullptr)
        return absl::UnimplementedError(
            absl::StrCat("output `", output.name, "` of a graph inside the model ", SizeProblem(*value)));
      outputs.push_back(*value);
    }
    --depth_;
    return outputs;
  }

 private:
  void Define(Values* values, const std::string& name, const TypedConstant& constant) {
    if (constant.texts != nullptr) {
      values->tensors[name] = ConstantTexts(*builder_, *constant.texts);
      return;
    }
    Buffer& known = constants_[constant.value.get()];
    if (known == nullptr) known = builder_->AddConstant(constant.value);
    values->tensors[name] = {known, constant.type};
  }

  // A graph as a node sees it that stands in it.
  class GraphAround : public NodesAround {
   public:
    GraphAround(Importer* importer, Values* values) : importer_(importer), values_(values) {}
    const std::vector<ImportedNode>& nodes() const override { return values_->nodes; }
    const TypedTensor* Find(const std::string& name) const override { return values_->Find(name); }
    std::optional<size_t> MakerOf(const std::string& name) const override {
      const auto maker = values_->makers.find(name);
      return maker == values_->makers.end() ? std::nullopt : std::optional(maker->second);
    }
    absl::Status Add(OnnxNode node, const Opsets& opsets) override {
      return importer_->OneNode(values_->added.emplace_back(std::move(node)), opsets, values_);
    }
    void Record(OnnxNode node, const Opsets& opsets) override {
      values_->AddNode(&values_->added.emplace_back(std::move(node)), &opsets);
    }

   private:
    Importer* const importer_;
    Values* const values_;
  };

  absl::Status Nodes(const std::vector<OnnxNode>& nodes, const Opsets& opsets, Values* values) {
    for (const OnnxNode& node : nodes) {
      for (const std::string& output : node.outputs) {
        if (values->tensors.count(output)) return At(node, DefinedTwice(output));
      }
    }
    const auto is_known = [values](const std::string& name) { return values->Find(name) != nullptr; };
    MYCC_ASSIGN_OR_RETURN(const std::vector<size_t> order, ExecutionOrder(nodes, is_known));
    for (size_t i : order) {
      if (absl::Status status = OneNode(nodes[i], opsets, values); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status OneNode(const OnnxNode& node, const Opsets& opsets, Values* values) {
    if (++num_nodes_ > kMostNodes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "more than ", kMostNodes, " nodes, with those that calls of functions and graphs add"));
    }
    std::vector<TypedTensor> inputs;
    for (const std::string& name : node.inputs) {
      const TypedTensor* value = name.empty() ? nullptr : values->Find(name);
      if (value == nullptr && !name.empty())
        return At(node,
                  absl::InvalidArgumentError(absl::StrCat("reads `", name, "`, which nothing defines")));
      inputs.push_back(value == nullptr ? TypedTensor{} : *value);
    }
    if (depth_ == 1) builder_->SetOrigins({absl::StrCat(node.op, " ", NameOf(node))});
    const auto function = model_.functions.find(absl::StrCat(node.domain, ":", node.op));
    absl::StatusOr<std::vector<TypedTensor>> outputs =
        function != model_.functions.end() ? CallFunction(function->second, node, inputs)
                                           : CallOperator(node, opsets, std::move(inputs), values);
    if (!outputs.ok()) return At(node, outputs.status());
    for (size_t i = 0; i < node.outputs.size() && i < outputs->size(); ++i) {
      if (node.outputs[i].empty()) continue;
      if (!values->tensors.emplace(node.outputs[i], (*outputs)[i]).second)
        return At(node, DefinedTwice(node.outputs[i]));
    }
    values->AddNode(&node, &opsets);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<TypedTensor>> CallOperator(const OnnxNode& node, const Opsets& opsets,
                                                        std::vector<TypedTensor> inputs, Values* values) {
    const auto opset = opsets.find(node.domain);
    const Operator* op = FindOperator(node.domain, node.op);
    if (op == nullptr) return absl::UnimplementedError("the operator is not supported");
    MYCC_RETURN_IF_ERROR(CheckInputs(*op, inputs));
    const int64_t version = opset == opsets.end() ? 1 : opset->second;
    MYCC_ASSIGN_OR_RETURN(const auto new_form, InNewForm(node, version, builder_, &inputs));
    NodeImport import(new_form ? *new_form : node, version, std::move(inputs), builder_,
                      [&](const OnnxGraph& graph, const std::vector<TypedTensor>& graph_inputs) {
                        return Run(graph, graph_inputs, values);
                      });
    GraphAround around(this, values);
    import.StandIn(&around);
    if (depth_ == 1) import.Declare(DeclaredShapes(node));
    MYCC_RETURN_IF_ERROR(op->import(import));
    MYCC_RETURN_IF_ERROR(builder_->status());
    for (size_t i = 0; i < import.num_outputs(); ++i) {
      if (import.outputs()[i].tensor == nullptr) {
        if (import.Wants(i) && !import.outputs()[i].IsThere())
          return absl::UnimplementedError(absl::StrCat("output ", i, " of the operator is not supported"));
        continue;
      }
      const BufferNode& tensor = *import.outputs()[i].tensor;
      if (const std::string problem = ShapeProblem(tensor.shape); !problem.empty())
        return absl::InvalidArgumentError(absl::StrCat("output ", i, ": ", problem));
    }
    return import.outputs();
  }

  // The shapes of the node's outputs that follow from what the model declares.
  std::vector<std::optional<std::vector<int64_t>>> DeclaredShapes(const OnnxNode& node) const {
    std::vector<std::optional<std::vector<int64_t>>> shapes;
    for (const std::string& name : node.outputs) {
      const auto shape = declared_.find(name);
      shapes.push_back(shape == declared_.end() ? std::nullopt : std::optional(shape->second));
    }
    return shapes;
  }

  absl::StatusOr<std::vector<TypedTensor>> CallFunction(const OnnxFunction& function, const OnnxNode& call,
                                                        const std::vector<TypedTensor>& inputs) {
    if (++depth_ > kMostCallDepth) return absl::InvalidArgumentError("functions call each other too deeply");
    Values values;
    for (size_t i = 0; i < function.inputs.size(); ++i)
      values.tensors[function.inputs[i]] = i < inputs.size() ? inputs[i] : TypedTensor{};
    MYCC_RETURN_IF_ERROR(Nodes(WithAttributes(function, call), function.opsets, &values));
    std::vector<TypedTensor> outputs;
    for (const std::string& name : function.outputs) {
      const TypedTensor* value = values.Find(name);
      outputs.push_back(value == nullptr ? TypedTensor{} : *value);
    }
    --depth_;
    return outputs;
  }

  // The function's nodes with the call's attributes in place of references to them.
  static std::vector<OnnxNode> WithAttributes(const OnnxFunction& function, const OnnxNode& call) {
    std::vector<OnnxNode> nodes = function.nodes;
    for (OnnxNode& node : nodes) {
      OnnxAttributes attributes;
      for (const auto& [name, attribute] : node.attributes) {
        if (attribute.reference.empty()) {
          attributes[name] = attribute;
          continue;
        }
        for (const OnnxAttributes* from : {&call.attributes, &function.defaults}) {
          const auto at = from->find(attribute.reference);
          if (at != from->end()) attributes.emplace(name, at->second);
        }
      }
      node.attributes = std::move(attributes);
    }
    return nodes;
  }

  const OnnxModel& model_;
  GraphBuilder* const builder_;
  std::unordered_map<const NDArray*, Buffer> constants_;
  std::unordered_map<std::string, std::vector<int64_t>> declared_;
  int depth_ = 0;
  int64_t num_nodes_ = 0;  // imported so far
};

// The inputs that a caller passes: those that are no initializers.
std::vector<const DeclaredValue*> CallersInputs(const OnnxGraph& graph) {
  std::vector<const DeclaredValue*> inputs;
  for (const DeclaredValue& input : graph.inputs) {
    if (!graph.initializers.count(input.name)) inputs.push_back(&input);
  }
  return inputs;
}

absl::StatusOr<Graph> ImportModel(const OnnxModel& model, const OnnxOptions& options,
                                  const std::string& name) {
  MYCC_RETURN_IF_ERROR(CheckOperators(model));
  MYCC_ASSIGN_OR_RETURN(const InputTensors input_tensors,
                        InputTensors::Of(CallersInputs(model.graph), options));
  const std::vector<const DeclaredValue*> inputs = input_tensors.tensors();
  MYCC_ASSIGN_OR_RETURN(const auto known, KnownInputs(inputs, options));
  std::map<std::string, std::vector<int64_t>> given = options.shapes;
  for (const auto& [input, value] : known) given[input] = value->shape;
  MYCC_ASSIGN_OR_RETURN(const auto shapes, InputShapes(inputs, given));
  GraphBuilder builder(name);
  // A graph's inputs are numbered with those that are initializers; Run gives these their values.
  std::vector<TypedTensor> values;
  OnnxGraph graph = model.graph;
  graph.inputs.clear();
  for (size_t i = 0; i < inputs.size(); ++i) {
    graph.inputs.push_back(*inputs[i]);
    const auto value = known.find(inputs[i]->name);
    const bool is_text = inputs[i]->type == kString;
    const Buffer tensor =
        value != known.end()
            ? builder.AddConstant(value->second)
            : builder.AddInput(inputs[i]->name, is_text ? DType::kU64 : *StorageOf(inputs[i]->type),
                               shapes[i], is_text);
    values.push_back({tensor, inputs[i]->type});
  }
  input_tensors.Join(&graph.inputs, &values);
  Importer importer(model, &builder);
  MYCC_ASSIGN_OR_RETURN(std::vector<TypedTensor> outputs, importer.Run(graph, values, nullptr));
  MYCC_RETURN_IF_ERROR(TakeApartOutputs(builder, &graph.outputs, &outputs));
  std::set<std::string> names;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = graph.outputs[i].name;
    if (!names.insert(name).second)
      return absl::InvalidArgumentError(absl::StrCat("output `", name, "` is declared twice"));
    if (outputs[i].tensor == nullptr) {
      return absl::UnimplementedError(absl::StrCat("output `", name, "` of type ", graph.outputs[i].kind,
                                                   " is not supported; expected a tensor"));
    }
    NamedTensor output{name, outputs[i].tensor, outputs[i].IsText()};
    if (outputs[i].size != nullptr) {
      for (const auto& [axis, extent] : outputs[i].size->extents) output.bounded.push_back(axis);
    }
    builder.AddOutput(std::move(output));
  }
  for (const TypedTensor& output : outputs) {
    if (output.size == nullptr) continue;
    for (const auto& [axis, extent] : output.size->extents) builder.AddOutput({"", extent, false, {}, true});
  }
  MYCC_RETURN_IF_ERROR(builder.status());
  return builder.Finish();
}

}  // namespace
}  // namespace onnx

namespace {

absl::StatusOr<Graph> GraphOf(const onnx::OnnxModel& model, const std::string& file,
                              const OnnxOptions& options) {
  absl::StatusOr<Graph> graph =
      onnx::ImportModel(model, options, std::filesystem::path(file).stem().string());
  if (!graph.ok())
    return absl::Status(graph.status().code(),
                        absl::StrCat(file, ": ", std::string(graph.status().message())));
  MYCC_RETURN_IF_ERROR(VerifyGraph(*graph));
  return graph;
}

}  // namespace

absl::StatusOr<Graph> ImportOnnx(const std::string& file, const OnnxOptions& options) {
  MYCC_ASSIGN_OR_RETURN(const onnx::OnnxModel model, onnx::ReadModel(file));
  return GraphOf(model, file, options);
}

absl::StatusOr<Graph> ImportOnnxBytes(const std::string& bytes, const std::string& file,
                                      const OnnxOptions& options) {
  MYCC_ASSIGN_OR_RETURN(const onnx::OnnxModel model, onnx::ReadModelBytes(bytes, file));
  return GraphOf(model, file, options);
}

}  // namespace mycc
