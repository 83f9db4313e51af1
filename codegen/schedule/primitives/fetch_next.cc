// fetch_next(l): while loop l runs, its reads of the workload's inputs are fetched into the first cache for
// the next iteration of the loop around it. A loop that computes much hides the time that memory takes for
// the next row, whose beginning no hardware foresees.
#include "base/status.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/tree.h"

namespace mycc {

absl::StatusOr<Function> FetchNext(const Function& function, const Target& target, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindLoop(function, args.Name(0)));
  if (target.kind == TargetKind::kCuda)
    return absl::FailedPreconditionError("fetching ahead is for CPUs; a GPU has pipeline");
  if (LoopsOn(path).size() < 2) return absl::FailedPreconditionError("the loop stands inside no other");
  const For& loop = path.loop();
  LoopMarks marks = loop.marks;
  marks.fetches_next = true;
  return WithMarks(function, path, std::move(marks));
}

}  // namespace mycc
