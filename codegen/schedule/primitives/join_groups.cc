// join_groups(B, 4): makes one group of each four of a sum of products in groups, by weights that are zero
// between them (codegen/workload/joined_groups.h). B keeps its name and writes the same tensor; the new
// block's name begins with B's. Weights that are known ahead are made ahead of time.
//
//   for k in 32: for c in 4:                       for k in 32: for c in 16: B.wide: B.wide[k, c] = w[k, c %
//   4],
//     B: t2[k] += x[k//4*4 + c] * w[k, c]     ->                               where c//4 = k//4 % 4; else 0
//                                                  for k in 32: for c in 16:
//                                                    B: t2[k] += x[k//16*16 + c] * B.wide[k, c]
#include "base/status.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/stages.h"
#include "codegen/workload/joined_groups.h"

namespace mycc {

absl::StatusOr<Function> JoinGroups(const Function& function, const Target& target, const StepArgs& args) {
  if (target.direct_sums)
    return absl::FailedPreconditionError(
        "the target is sums=direct, which forbids products with other groups");
  MYCC_ASSIGN_OR_RETURN(const Stage stage, StageOf(function, args.Name(0)));
  MYCC_ASSIGN_OR_RETURN(const std::vector<Stage> stages, JoinedGroupsStages(stage, args.Int(1)));
  MYCC_ASSIGN_OR_RETURN(const Function result, ReplaceByStages(function, args.Name(0), stages));
  const Buffer& wide = stages.front().output;
  return PackedIfKnown(result, wide);
}

}  // namespace mycc
