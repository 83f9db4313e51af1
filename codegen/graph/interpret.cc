#include "codegen/graph/interpret.h"

#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/graph/library_kernels.h"
#include "codegen/runtime/artifact/library_kernels.h"

namespace mycc {
namespace {

using Values = std::unordered_map<const BufferNode*, Constant>;

absl::Status RunOneStage(const Stage& stage, Values* values) {
  Workload workload{"stage", {}, {stage.output}, {stage}};
  std::vector<NDArray> inputs;
  for (const Buffer& load : TensorsIn(stage.value)) {
    workload.inputs.push_back({load, false});
    inputs.push_back(*values->at(load.get()));
  }
  MYCC_ASSIGN_OR_RETURN(std::vector<NDArray> outputs, RunReference(workload, inputs));
  (*values)[stage.output.get()] = std::make_shared<const NDArray>(std::move(outputs[0]));
  return absl::OkStatus();
}

absl::Status RunCall(const Node& node, const LibraryCall& call, Values* values) {
  std::vector<const NDArray*> inputs;
  for (const Buffer& input : call.inputs) inputs.push_back(values->at(input.get()).get());
  MYCC_ASSIGN_OR_RETURN(std::vector<NDArray> outputs, RunLibraryCall(call, node.outputs, inputs));
  for (size_t i = 0; i < outputs.size(); ++i)
    (*values)[node.outputs[i].get()] = std::make_shared<const NDArray>(std::move(outputs[i]));
  return absl::OkStatus();
}

absl::Status RunNode(const Node& node, Values* values) {
  if (const Stage* stage = std::get_if<Stage>(&node.made_by)) return RunOneStage(*stage, values);
  if (const LibraryCall* call = std::get_if<LibraryCall>(&node.made_by)) return RunCall(node, *call, values);
  if (const Constant* constant = std::get_if<Constant>(&node.made_by)) {
    (*values)[node.outputs[0].get()] = *constant;
    return absl::OkStatus();
  }
  const Reshape& reshape = std::get<Reshape>(node.made_by);
  const NDArray& source = *values->at(reshape.source.get());
  NDArray reshaped{source.dtype, node.outputs[0]->shape, {}};
  const auto begin = source.bytes.begin() + reshape.offset * DTypeBytes(source.dtype);
  reshaped.bytes.assign(begin, begin + node.outputs[0]->bytes());
  (*values)[node.outputs[0].get()] = std::make_shared<const NDArray>(std::move(reshaped));
  return absl::OkStatus();
}

// The model's own outputs, each cut to its actual extents.
std::vector<NDArray> OutputsOf(const Graph& graph, const Values& values) {
  std::vector<NDArray> outputs;
  std::vector<int64_t> extents;
  for (const NamedTensor& output : graph.outputs) {
    const NDArray& value = *values.at(output.tensor.get());
    if (output.is_extent) {
      extents.push_back(value.Get(0).i);
    } else {
      outputs.push_back(value);
    }
  }
  size_t next = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (const int axis : graph.outputs[i].bounded) outputs[i].shape[axis] = extents[next++];
    outputs[i].bytes.resize(outputs[i].num_elements() * DTypeBytes(outputs[i].dtype));
  }
  return outputs;
}

}  // namespace

absl::StatusOr<std::vector<NDArray>> InterpretGraph(const Graph& graph, const std::vector<NDArray>& inputs) {
  if (inputs.size() != graph.inputs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(graph.name, " got ", inputs.size(), " inputs; expected ", graph.inputs.size()));
  }
  MyccForgetTexts();
  Values values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const BufferNode& tensor = *graph.inputs[i].tensor;
    if (inputs[i].dtype != tensor.dtype || inputs[i].shape != tensor.shape) {
      return absl::InvalidArgumentError(
          absl::StrCat("input `", graph.inputs[i].name, "` has another type or shape than the model's"));
    }
    values[&tensor] = std::make_shared<const NDArray>(inputs[i]);
  }
  for (const Node& node : graph.nodes) MYCC_RETURN_IF_ERROR(RunNode(node, &values));
  return OutputsOf(graph, values);
}

}  // namespace mycc
