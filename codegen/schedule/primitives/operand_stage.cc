// operand_stage(B, 0): gives a factor of B's products (0: left, 1: right) a block of its own, B.a or B.b,
// that computes it once, in the type that it is rounded to (codegen/schedule/operand_stage.h).
//
//   for i, j: for k:                                         for i, k: B.a: B.a[i,k] = bf16(exp(t0[i,k]))
//     B: t2[i,j] += f32(bf16(exp(t0[i,k]))) * ..     ->      for i, j: for k: B: t2[i,j] += f32(B.a[i,k]) *
//     ..
#include "codegen/schedule/operand_stage.h"

#include "base/status.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/stages.h"

namespace mycc {

absl::StatusOr<Function> OperandStage(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Stage stage, StageOf(function, args.Name(0)));
  const int64_t factor = args.Int(1);
  if (factor != 0 && factor != 1) return Refusal("factor ", factor, "; expected 0 (left) or 1 (right)");
  MYCC_ASSIGN_OR_RETURN(const std::vector<Stage> stages, OperandStages(stage, static_cast<int>(factor)));
  return ReplaceByStages(function, args.Name(0), stages);
}

}  // namespace mycc
