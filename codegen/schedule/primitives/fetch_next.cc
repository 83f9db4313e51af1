// fetch_next(l): while loop l runs, the elements of inputs that it will read in the next iteration of the
// enclosing loop are prefetched into L1. This hides the memory latency of the next row, whose start no
// hardware prefetcher predicts, behind the computation.
#include "base/status.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/tree.h"

namespace mycc {

absl::StatusOr<Function> FetchNext(const Function& function, const Target& target, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindLoop(function, args.Name(0)));
  if (target.kind == TargetKind::kCuda)
    return absl::FailedPreconditionError("fetching ahead is for CPUs; a GPU has pipeline");
  if (LoopsOn(path).size() < 2) return absl::FailedPreconditionError("the loop is not inside another one");
  const For& loop = path.loop();
  LoopMarks marks = loop.marks;
  marks.fetches_next = true;
  return WithMarks(function, path, std::move(marks));
}

}  // namespace mycc
