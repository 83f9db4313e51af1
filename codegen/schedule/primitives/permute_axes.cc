// permute_axes(B, [1, 0]): B's tensor has its dimensions in another order, and so have the loops; a block B
// copies it to the tensor that it was (codegen/schedule/permuted_axes.h). Inlined, the copy leaves readers of
// the new tensor.
//
//   for i, j: for k: B: t2[i,j] += ..     ->     for j, i: for k: B.p: B.p[j,i] += ..
//                                                for i, j: B: t2[i,j] = B.p[j,i]
#include "base/status.h"
#include "codegen/schedule/permuted_axes.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/stages.h"

namespace mycc {

absl::StatusOr<Function> PermuteAxes(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Stage stage, StageOf(function, args.Name(0)));
  MYCC_ASSIGN_OR_RETURN(const std::vector<Stage> stages, PermutedStages(stage, args.Ints(1)));
  return ReplaceByStages(function, args.Name(0), stages);
}

}  // namespace mycc
