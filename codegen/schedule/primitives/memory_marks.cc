// Marks of a CPU's loops: what is prefetched, and what bypasses the caches.
//
// prefetch(l, rows, lanes, sums): sets prefetching for the instruction of loop l. Elements of the rows'
// operand are prefetched `rows` iterations ahead, those of the lanes' operand `lanes` iterations ahead; 0:
// not at all. Past the loop's end these are the elements after the operand's block: in panels, the beginning
// of the next panel. With sums 1, the memory of the sums in tile registers is prefetched for writing before l
// begins.
//
// fetch_next(l): while loop l runs, the elements of inputs that it will read in the next iteration of the
// enclosing loop are prefetched into L1. This hides the memory latency of the next row, whose start no
// hardware prefetcher predicts, behind the computation.
//
// nontemporal(l): stores of whole vectors to outputs under loop l bypass the caches, and do not read the
// cache line first. It is for outputs too large to stay in a cache until they are read. On GPUs the compiler
// chooses such stores.
#include "base/status.h"
#include "codegen/schedule/primitives/annotate.h"
#include "codegen/target/instructions.h"

namespace mycc {
namespace {

constexpr int64_t kFarthest = 64;

absl::Status CheckPrefetch(const Marking& step) {
  const Instruction* row = InstructionNamed(step.loop.marks.instruction);
  if (row != nullptr && row->is_cpu()) return absl::OkStatus();
  return Refusal("the loop belongs to no instruction of a CPU; tensorize it first");
}

absl::Status CheckFetchNext(const Marking& step) {
  if (LoopsOn(step.path).size() > 1) return absl::OkStatus();
  return Refusal("the loop is not inside another one");
}

absl::Status CheckNontemporal(const Marking& step) {
  for (const Block* block : BlocksUnder(step.path.target())) {
    for (const Param& param : step.function.params) {
      if (param.kind == ParamKind::kOutput && param.buffer == block->out) return absl::OkStatus();
    }
  }
  return Refusal("no block under ", step.loop.var->name, " writes an output of the workload");
}

}  // namespace

constexpr LoopMark kPrefetchMark = {
    .numbers = {MarkNumber{1, 0, kFarthest, "iterations"}, MarkNumber{2, 0, kFarthest, "iterations"},
                MarkNumber{3, 0, 1, "for sums"}},
    .check = CheckPrefetch,
    .set =
        [](const StepArgs& args, LoopMarks* marks) {
          marks->rows_ahead = args.Int(1);
          marks->lanes_ahead = args.Int(2);
          marks->fetches_sums = args.Int(3) == 1;
        },
};

constexpr LoopMark kFetchNextMark = {
    .device = MarkedDevice::kCpu,
    .check = CheckFetchNext,
    .set = [](const StepArgs&, LoopMarks* marks) { marks->fetches_next = true; },
};

constexpr LoopMark kNontemporalMark = {
    .device = MarkedDevice::kCpu,
    .check = CheckNontemporal,
    .set = [](const StepArgs&, LoopMarks* marks) { marks->nontemporal = true; },
};

}  // namespace mycc
