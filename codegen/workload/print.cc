#include "codegen/workload/print.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "codegen/expr/print.h"

namespace mycc {
namespace {

std::string PrintStage(const Stage& stage, bool is_output) {
  std::string text = absl::StrCat(stage.output->name, "[");
  absl::StrAppend(&text,
                  absl::StrJoin(stage.axes, ",",
                                [](std::string* out, const Var& axis) { absl::StrAppend(out, axis->name); }),
                  "]");
  if (!is_output) absl::StrAppend(&text, ": ", TypeText(stage.output));
  const std::string value = PrintExpr(stage.value);
  if (stage.reduce == ReduceOp::kNone) return absl::StrCat(text, " = ", value);
  const std::string axes = absl::StrJoin(stage.reduce_axes, ", ", [](std::string* out, const Var& axis) {
    absl::StrAppend(out, axis->name, ":", axis->extent);
  });
  return absl::StrCat(text, " = ", std::string(ReduceOpName(stage.reduce)), "[", axes, "](", value, ")");
}

}  // namespace

std::string PrintWorkload(const Workload& workload) {
  std::string text = workload.count == 1 ? "" : absl::StrCat("# count ", workload.count, "\n");
  absl::StrAppend(&text, "workload ", workload.name, "(",
                  absl::StrJoin(workload.inputs, ", ",
                                [](std::string* out, const Argument& input) {
                                  absl::StrAppend(out, input.tensor->name, ": ",
                                                  input.is_const ? "const " : "", TypeText(input.tensor));
                                }),
                  ") -> (",
                  absl::StrJoin(workload.outputs, ", ",
                                [](std::string* out, const Buffer& output) {
                                  absl::StrAppend(out, output->name, ": ", TypeText(output));
                                }),
                  ") {\n");
  for (const Stage& stage : workload.stages) {
    const bool is_output = std::ranges::find(workload.outputs, stage.output) != workload.outputs.end();
    absl::StrAppend(&text, "  ", PrintStage(stage, is_output), "\n");
  }
  return text + "}\n";
}

}  // namespace mycc
