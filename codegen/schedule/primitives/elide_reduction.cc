// elide_reduction(B): a reduction of one term is that term (codegen/schedule/single_term.h). Its readers can
// then be computed with it, element by element.
//
//   for i: for k in 1: B: t1[i] += t0[i,k]     ->     for i: B: t1[i] = 0.0 + t0[i,0]
#include "base/status.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/single_term.h"
#include "codegen/schedule/stages.h"

namespace mycc {

absl::StatusOr<Function> ElideReduction(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Stage stage, StageOf(function, args.Name(0)));
  if (!HasSingleTerm(stage)) return Refusal(args.Name(0), " is no reduction of one term");
  return ReplaceByStages(function, args.Name(0), {SingleTermStage(stage)});
}

}  // namespace mycc
