// split_chain(B, heads, rows, length): splits the chain of stages that ends in the sum B into parts of its
// axis, and lets the rows of several heads with the same keys share a tile (codegen/schedule/split_chain.h).
// All blocks are naive before and after.
#include "codegen/schedule/split_chain.h"

#include "base/status.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/stages.h"
#include "codegen/schedule/tree.h"

namespace mycc {

absl::StatusOr<Function> SplitChain(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Workload workload, WorkloadOf(function));
  MYCC_ASSIGN_OR_RETURN(const Path path, FindBlock(function, args.Name(0)));
  int sum = 0;
  while (workload.stages[sum].output != path.block().out) ++sum;
  const std::optional<StreamChain> chain = FindStreamChain(workload, StageLinks(workload), sum);
  if (!chain) {
    return Refusal(path.block().name, " does not end a chain of stages along one axis");
  }
  MYCC_ASSIGN_OR_RETURN(
      const Workload parts,
      WithChainParts(workload, *chain, {.heads = args.Int(1), .rows = args.Int(2), .length = args.Int(3)}));
  return BuildNaive(parts);
}

}  // namespace mycc
