#include "codegen/graph/graph.h"

#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "codegen/workload/check.h"

namespace mycc {
namespace {

using TensorSet = BufferSet;

absl::Status Broken(const Buffer& tensor, const std::string& what) {
  return absl::InternalError(absl::StrCat("graph, tensor ", tensor->name, ": ", what));
}

absl::Status VerifyNode(const Node& node, const TensorSet& known) {
  if (node.outputs.empty()) return absl::InternalError("graph: a node without an output");
  const Buffer& output = node.outputs[0];
  for (const Buffer& read : ReadsOf(node)) {
    if (!known.count(read.get()))
      return Broken(output, absl::StrCat("reads ", read->name, ", which is not defined before it"));
  }
  if (const Constant* constant = std::get_if<Constant>(&node.made_by)) {
    if ((*constant)->dtype != output->dtype || (*constant)->shape != output->shape)
      return Broken(output, "its constant has another type or shape");
  }
  if (const Stage* stage = std::get_if<Stage>(&node.made_by)) {
    if (stage->output != output) return Broken(output, "its stage defines another tensor");
    if (const auto problem = CheckStage(*stage, known)) return Broken(output, problem->message);
  }
  if (const Reshape* reshape = std::get_if<Reshape>(&node.made_by)) {
    const BufferNode& source = *reshape->source;
    const bool is_inside =
        reshape->offset >= 0 && reshape->offset + output->num_elements() <= source.num_elements();
    if (source.dtype != output->dtype || !is_inside)
      return Broken(output, absl::StrCat("reshapes ", source.name, " of another size or type"));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<Buffer> TensorsIn(const Expr& expr) {
  std::vector<Buffer> loads;
  TensorSet seen;
  Visit(expr, [&](const ExprNode& e) {
    if (e.op == Op::kLoad && seen.insert(e.buffer.get()).second) loads.push_back(e.buffer);
  });
  return loads;
}

std::vector<Buffer> ReadsOf(const Node& node) {
  if (const Stage* stage = std::get_if<Stage>(&node.made_by)) return TensorsIn(stage->value);
  if (const Reshape* reshape = std::get_if<Reshape>(&node.made_by)) return {reshape->source};
  std::vector<Buffer> reads;
  if (const LibraryCall* call = std::get_if<LibraryCall>(&node.made_by)) {
    TensorSet seen;
    for (const Buffer& input : call->inputs) {
      if (seen.insert(input.get()).second) reads.push_back(input);
    }
  }
  return reads;
}

std::unordered_map<const BufferNode*, size_t> Definitions(const Graph& graph) {
  std::unordered_map<const BufferNode*, size_t> definitions;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const Buffer& output : graph.nodes[i].outputs) definitions[output.get()] = i;
  }
  return definitions;
}

absl::Status VerifyGraph(const Graph& graph) {
  TensorSet known;
  for (const NamedTensor& input : graph.inputs) known.insert(input.tensor.get());
  for (const Node& node : graph.nodes) {
    MYCC_RETURN_IF_ERROR(VerifyNode(node, known));
    for (const Buffer& output : node.outputs) {
      if (!known.insert(output.get()).second) return Broken(output, "is defined twice");
    }
  }
  for (const NamedTensor& output : graph.outputs) {
    if (!known.count(output.tensor.get())) return Broken(output.tensor, "is an output that nothing defines");
  }
  return absl::OkStatus();
}

}  // namespace mycc
