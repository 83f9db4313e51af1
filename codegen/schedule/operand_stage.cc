#include "codegen/schedule/operand_stage.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/product.h"

namespace mycc {
namespace {

// The factor without the cast that widens it for the sum.
Expr Narrowest(const Expr& factor) {
  const bool widens = factor->op == Op::kCast && IsFloat(factor->args[0]->dtype) &&
                      DTypeBytes(factor->args[0]->dtype) < DTypeBytes(factor->dtype);
  return widens ? factor->args[0] : factor;
}

// The axes in the order of a load at each of those that the value uses, where there is one; else as they are.
// A stage that is computed from another one element by element then has the shape of that one.
std::vector<Var> InOrderOfLoads(const Expr& value, const std::vector<Var>& axes) {
  std::vector<Var> ordered;
  Visit(value, [&](const ExprNode& e) {
    if (e.op != Op::kLoad || !ordered.empty()) return;
    std::vector<Var> of_load;
    for (const Expr& index : e.args) {
      const bool is_new =
          index->op == Op::kVar && std::count(of_load.begin(), of_load.end(), index->var) == 0;
      if (is_new) of_load.push_back(index->var);
    }
    const bool has_all =
        of_load.size() == e.args.size() && std::all_of(axes.begin(), axes.end(), [&](const Var& axis) {
          return !UsesVar(value, axis.get()) || std::count(of_load.begin(), of_load.end(), axis) > 0;
        });
    if (has_all) ordered = std::move(of_load);
  });
  return ordered.empty() ? axes : ordered;
}

}  // namespace

ValueStage StageOfValue(const std::string& tensor, const Expr& value, const std::vector<Var>& axes) {
  Stage stage;
  std::vector<int64_t> shape;
  std::vector<Expr> index;
  VarMap own;
  for (const Var& axis : axes) {
    if (!UsesVar(value, axis.get())) continue;
    stage.axes.push_back(MakeVar(absl::StrCat("a", shape.size()), axis->extent));
    own[axis.get()] = VarRef(stage.axes.back());
    shape.push_back(axis->extent);
    index.push_back(VarRef(axis));
  }
  stage.output = MakeBuffer(tensor, value->dtype, shape);
  stage.value = Substitute(value, own);
  const Expr load = Load(stage.output, std::move(index));
  return {std::move(stage), load};
}

bool IsComputedFactor(const Stage& stage, int factor) {
  return SumsProducts(stage) && Narrowest(stage.value->args[factor])->op != Op::kLoad;
}

absl::StatusOr<std::vector<Stage>> OperandStages(const Stage& stage, int factor) {
  if (!IsComputedFactor(stage, factor)) {
    return Refusal(stage.output->name, " is no sum of products whose ", factor == 0 ? "left" : "right",
                   " factor is computed");
  }
  const Expr &old = stage.value->args[factor], value = Narrowest(old);
  std::vector<Var> axes = stage.axes;
  axes.insert(axes.end(), stage.reduce_axes.begin(), stage.reduce_axes.end());
  ValueStage operand = StageOfValue(absl::StrCat(stage.output->name, factor == 0 ? ".a" : ".b"), value,
                                    InOrderOfLoads(value, axes));
  Stage sum = stage;
  std::vector<Expr> factors = stage.value->args;
  factors[factor] = value == old ? operand.load : MakeCast(old->dtype, operand.load);
  sum.value = WithArgs(stage.value, std::move(factors));
  return std::vector<Stage>{std::move(operand.stage), std::move(sum)};
}

}  // namespace mycc
