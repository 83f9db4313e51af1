#include "codegen/schedule/operand_stage.h"

#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

// The factor without the cast that widens it for the sum.
Expr Narrowest(const Expr& factor) {
  const bool widens = factor->op == Op::kCast && IsFloat(factor->args[0]->dtype) &&
                      DTypeBytes(factor->args[0]->dtype) < DTypeBytes(factor->dtype);
  return widens ? factor->args[0] : factor;
}

bool IsSumOfProducts(const Stage& stage) {
  return stage.reduce == ReduceOp::kSum && stage.value->op == Op::kMul;
}

}  // namespace

bool IsComputedFactor(const Stage& stage, int factor) {
  return IsSumOfProducts(stage) && Narrowest(stage.value->args[factor])->op != Op::kLoad;
}

absl::StatusOr<std::vector<Stage>> OperandStages(const Stage& stage, int factor) {
  if (!IsComputedFactor(stage, factor)) {
    return absl::FailedPreconditionError(absl::StrCat(stage.output->name, " is no sum of products whose ",
                                                      factor == 0 ? "left" : "right", " factor is computed"));
  }
  const Expr &old = stage.value->args[factor], value = Narrowest(old);
  Stage operand;
  std::vector<int64_t> shape;
  std::vector<Expr> index;
  VarMap own;
  for (const std::vector<Var>* axes : {&stage.axes, &stage.reduce_axes}) {
    for (const Var& axis : *axes) {
      if (!UsesVar(value, axis.get())) continue;
      operand.axes.push_back(MakeVar(absl::StrCat("a", shape.size()), axis->extent));
      own[axis.get()] = VarRef(operand.axes.back());
      shape.push_back(axis->extent);
      index.push_back(VarRef(axis));
    }
  }
  operand.output =
      MakeBuffer(absl::StrCat(stage.output->name, factor == 0 ? ".a" : ".b"), value->dtype, shape);
  operand.value = Substitute(value, own);
  Stage sum = stage;
  const Expr load = Load(operand.output, index);
  std::vector<Expr> factors = stage.value->args;
  factors[factor] = value == old ? load : MakeCast(old->dtype, load);
  sum.value = WithArgs(stage.value, std::move(factors));
  return std::vector<Stage>{std::move(operand), std::move(sum)};
}

}  // namespace mycc
