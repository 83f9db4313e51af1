#include "codegen/schedule/single_term.h"

#include <algorithm>

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
  Stage result = stage;
  result.value = Substitute(stage.value, at_zero);
  if (stage.reduce == ReduceOp::kSum && IsFloat(stage.output->dtype))
    result.value = ReduceIdentity(stage.reduce, stage.output->dtype) + result.value;
  result.reduce = ReduceOp::kNone;
  result.reduce_axes.clear();
  return result;
}

}  // namespace mycc
