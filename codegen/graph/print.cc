// PrintGraph: a graph as text.
#include "codegen/expr/print.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "codegen/graph/graph.h"

namespace mycc {
namespace {

std::string TypedName(const Buffer& tensor) { return absl::StrCat(tensor->name, ": ", TypeText(tensor)); }

std::string NamesOf(const std::vector<Buffer>& tensors) {
  return absl::StrJoin(tensors, ", ", [](std::string* out, const Buffer& b) { out->append(b->name); });
}

std::string StageText(const Stage& stage) {
  std::vector<std::string> axes, reduce_axes;
  for (const Var& axis : stage.axes) axes.push_back(axis->name);
  for (const Var& axis : stage.reduce_axes)
    reduce_axes.push_back(absl::StrCat(axis->name, ":", axis->extent));
  const std::string value = PrintExpr(stage.value);
  return absl::StrCat(stage.output->name, "[", absl::StrJoin(axes, ","), "]: ", TypeText(stage.output), " = ",
                      stage.reduce == ReduceOp::kNone
                          ? value
                          : absl::StrCat(std::string(ReduceOpName(stage.reduce)), "[",
                                         absl::StrJoin(reduce_axes, ", "), "](", value, ")"));
}

std::string NodeText(const Node& node) {
  if (const Stage* stage = std::get_if<Stage>(&node.made_by)) return StageText(*stage);
  const std::string left =
      absl::StrJoin(node.outputs, ", ", [](std::string* out, const Buffer& b) { out->append(TypedName(b)); });
  if (const Reshape* reshape = std::get_if<Reshape>(&node.made_by))
    return absl::StrCat(left, " = reshape(", reshape->source->name,
                        reshape->offset > 0 ? absl::StrCat(", from element ", reshape->offset) : "", ")");
  if (const LibraryCall* call = std::get_if<LibraryCall>(&node.made_by)) {
    return absl::StrCat(left, " = ", call->function, "<", absl::StrJoin(call->attributes, ","), ">(",
                        NamesOf(call->inputs), ")");
  }
  return absl::StrCat(left, " = constant");
}

}  // namespace

std::string PrintGraph(const Graph& graph) {
  std::string text = absl::StrCat("graph ", graph.name, "\n");
  for (const NamedTensor& input : graph.inputs)
    absl::StrAppend(&text, "  input ", input.name, input.is_text ? " (texts)" : "", " = ",
                    TypedName(input.tensor), "\n");
  for (const Node& node : graph.nodes) {
    absl::StrAppend(&text, "  ", NodeText(node));
    if (!node.origins.empty()) absl::StrAppend(&text, "  # ", absl::StrJoin(node.origins, " + "));
    absl::StrAppend(&text, "\n");
  }
  for (const NamedTensor& output : graph.outputs)
    absl::StrAppend(&text, output.is_extent ? "  extent" : "  output ", output.name,
                    output.is_text ? " (texts)" : "", " = ", output.tensor->name, "\n");
  return text;
}

}  // namespace mycc
