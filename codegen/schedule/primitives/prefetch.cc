// prefetch(l, rows, lanes, sums): sets prefetching for the instruction of loop l. Elements of the rows'
// operand are prefetched `rows` iterations ahead, those of the lanes' operand `lanes` iterations ahead; 0:
// not at all. Past the loop's end these are the elements after the operand's block: in panels, the beginning
// of the next panel. With sums 1, the memory of the sums in tile registers is prefetched for writing before l
// begins.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/schedule/instructions.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/tree.h"

namespace mycc {

absl::StatusOr<Function> Prefetch(const Function& function, const Target&, const StepArgs& args) {
  constexpr int64_t kFarthest = 64;
  MYCC_ASSIGN_OR_RETURN(const Path path, FindLoop(function, args.Name(0)));
  const For& loop = path.loop();
  const Instruction* row = InstructionNamed(loop.marks.instruction);
  if (row == nullptr || !row->is_cpu())
    return absl::FailedPreconditionError("the loop belongs to no instruction of a CPU; tensorize it first");
  LoopMarks marks = loop.marks;
  marks.rows_ahead = args.Int(1);
  marks.lanes_ahead = args.Int(2);
  marks.fetches_sums = args.Int(3) == 1;
  if (args.Int(3) != 0 && args.Int(3) != 1)
    return absl::FailedPreconditionError(absl::StrCat("sums ", args.Int(3), "; expected 0 or 1"));
  for (const int64_t ahead : {marks.rows_ahead, marks.lanes_ahead}) {
    if (ahead < 0 || ahead > kFarthest)
      return absl::FailedPreconditionError(absl::StrCat(ahead, " iterations; expected 0 to ", kFarthest));
  }
  return WithMarks(function, path, std::move(marks));
}

}  // namespace mycc
