#include "codegen/schedule/single_term.h"

#include <algorithm>

#include "codegen/ir/reduction.h"

namespace mycc {

bool HasSingleTerm(const Stage& stage) {
  const bool is_scalar = stage.reduce != ReduceOp::kNone && stage.reduce != ReduceOp::kArgMax &&
                         stage.reduce != ReduceOp::kArgMin;
  return is_scalar && std::all_of(stage.reduce_axes.begin(), stage.reduce_axes.end(),
                                  [](const Var& axis) { return axis->extent == 1; });
}

Stage SingleTermStage(const Stage& stage) {
  VarMap at_zero;
  for (const Var& axis : stage.reduce_axes) at_zero[axis.get()] = IntConst(0);
  const Expr term = Substitute(stage.value, at_zero);
  const Expr identity = ReduceIdentity(stage.reduce, stage.output->dtype);
  Stage result = stage;
  result.value = Reduction(stage.reduce).Combined(0, {identity}, {term});
  result.reduce = ReduceOp::kNone;
  result.reduce_axes.clear();
  return result;
}

}  // namespace mycc
