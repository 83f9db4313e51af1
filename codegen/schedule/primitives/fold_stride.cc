// fold_stride(B): the pixels that a convolution steps over become channels
// (codegen/workload/folded_stride.h). B keeps its name and writes the same tensor; the new blocks' names
// begin with B's. Weights that are known ahead are folded ahead of time.
//
//   for i, k: for r in 3: for c in 2:            for j, q in 4: B.folded: B.folded[j, q] = x[j*2 + q//2, q %
//   2]
//     B: t2[i, k] += x[i*2 + r, c]          ->   for k, r in 2, q in 4: B.taps: B.taps[k, r, q] = w[.., q %
//     2],
//                    * w[k, r, c]                                               where r*2 + q//2 < 3; else 0
//                                                for i, k: for r in 2: for q in 4:
//                                                  B: t2[i, k] += B.folded[i + r, q] * B.taps[k, r, q]
#include "base/status.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/stages.h"
#include "codegen/workload/folded_stride.h"

namespace mycc {

absl::StatusOr<Function> FoldStride(const Function& function, const Target& target, const StepArgs& args) {
  if (target.direct_sums)
    return absl::FailedPreconditionError("the target is sums=direct, which forbids products beyond windows");
  MYCC_ASSIGN_OR_RETURN(const Stage stage, StageOf(function, args.Name(0)));
  MYCC_ASSIGN_OR_RETURN(const std::vector<Stage> stages, FoldedStrideStages(stage));
  MYCC_ASSIGN_OR_RETURN(const Function result, ReplaceByStages(function, args.Name(0), stages));
  const Buffer& taps = stages[1].output;
  return PackedIfKnown(result, taps);
}

}  // namespace mycc
