// factor_stage(B): gives B's value without its positive factor a block of its own, B.x. Where B is inlined
// then, its readers have the factor: a maximum is taken of the elements without it, and an exponent has it in
// the constant that it is multiplied by anyway (stream_reduction).
//
//   for i, j: B: t1[i,j] = select(j <= i, tanh(t0[i,j]) * 50, -inf)
//     ->
//   for i, j: B.x: B.x[i,j] = select(j <= i, tanh(t0[i,j]), -inf)
//   for i, j: B: t1[i,j] = B.x[i,j] * 50
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/schedule/correction.h"
#include "codegen/schedule/operand_stage.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/stages.h"

namespace mycc {

absl::StatusOr<Function> FactorStage(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(Stage stage, StageOf(function, args.Name(0)));
  const PositiveFactor parts = PositiveFactorOf(stage.value);
  if (stage.reduce != ReduceOp::kNone || parts.factor == 1)
    return Refusal(stage.output->name, " has no positive factor; expected c * x, or select(.., c * x, -inf)");
  ValueStage rest = StageOfValue(absl::StrCat(stage.output->name, ".x"), parts.rest, stage.axes);
  stage.value = MakeBinary(Op::kMul, rest.load, FloatConst(parts.factor, stage.value->dtype));
  return ReplaceByStages(function, args.Name(0), {std::move(rest.stage), std::move(stage)});
}

}  // namespace mycc
