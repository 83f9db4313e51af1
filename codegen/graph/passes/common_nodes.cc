// Nodes that compute the same from the same tensors become one.
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/sha256.h"
#include "codegen/expr/print.h"
#include "codegen/graph/passes/passes.h"

namespace mycc {
namespace {

// The computation of a node, as text: equal for nodes that compute the same from the same tensors.
std::string TextOf(const Node& node) {
  const BufferNode& output = *node.outputs[0];
  const std::string type = TypeText(output.dtype, output.shape);
  if (const Constant* constant = std::get_if<Constant>(&node.made_by)) {
    const std::vector<uint8_t>& bytes = (*constant)->bytes;
    return absl::StrCat("constant ", type, " ",
                        Sha256Hex(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())));
  }
  if (const Reshape* reshape = std::get_if<Reshape>(&node.made_by))
    return absl::StrCat("reshape ", type, " ", reshape->source->name, " ", reshape->offset);
  if (const LibraryCall* call = std::get_if<LibraryCall>(&node.made_by)) {
    return absl::StrCat(
        "call ", call->function, " ", absl::StrJoin(call->attributes, ","), " ", type, " ",
        absl::StrJoin(call->inputs, ",", [](std::string* out, const Buffer& b) { out->append(b->name); }));
  }
  const Stage& stage = std::get<Stage>(node.made_by);
  std::unordered_map<const VarNode*, std::string> names;
  const auto add_axes = [&](const std::vector<Var>& axes, const char* prefix) {
    std::string text;
    for (size_t i = 0; i < axes.size(); ++i) {
      names[axes[i].get()] = absl::StrCat(prefix, i);
      absl::StrAppend(&text, axes[i]->extent, ",");
    }
    return text;
  };
  const std::string axes = add_axes(stage.axes, "a") + ";" + add_axes(stage.reduce_axes, "r");
  PrintNames print;
  print.var = [&](const VarNode& var) { return names.at(&var); };
  return absl::StrCat("stage ", type, " ", axes, std::string(ReduceOpName(stage.reduce)), " ",
                      PrintExpr(stage.value, print));
}

}  // namespace

Graph MergeCommonNodes(Graph graph, const Target&) {
  std::unordered_map<std::string, std::vector<Buffer>> known;
  std::unordered_map<const BufferNode*, Buffer> merged;
  const auto current = [&](const Buffer& tensor) {
    const auto at = merged.find(tensor.get());
    return at == merged.end() ? tensor : at->second;
  };
  std::vector<Node> nodes;
  for (Node& node : graph.nodes) {
    if (Stage* stage = std::get_if<Stage>(&node.made_by)) {
      stage->value = Rewrite(stage->value, [&](const Expr& e) -> Expr {
        if (e->op != Op::kLoad || !merged.count(e->buffer.get())) return nullptr;
        return Load(current(e->buffer), e->args);
      });
    }
    if (Reshape* reshape = std::get_if<Reshape>(&node.made_by)) reshape->source = current(reshape->source);
    if (LibraryCall* call = std::get_if<LibraryCall>(&node.made_by)) {
      for (Buffer& input : call->inputs) input = current(input);
    }
    const auto [at, is_new] = known.emplace(TextOf(node), node.outputs);
    if (is_new) {
      nodes.push_back(std::move(node));
    } else {
      for (size_t i = 0; i < node.outputs.size(); ++i) merged[node.outputs[i].get()] = at->second[i];
    }
  }
  graph.nodes = std::move(nodes);
  for (NamedTensor& output : graph.outputs) output.tensor = current(output.tensor);
  return graph;
}

}  // namespace mycc
