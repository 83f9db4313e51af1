// cluster_reduce(l, n): a cluster of n thread blocks executes each iteration of the block loop l together.
// The thread loops inside number the threads of all n blocks, so that a row too long for the registers of one
// block stays in those of several. Reductions over these threads exchange partial results between the blocks.
// It needs Hopper's clusters.
//
//   block i in 16:                     block i in 16 by 4 blocks each:
//     alloc m                            alloc m
//     m = -inf                     ->    m = -inf
//     thread t in 1024:                  thread t in 1024:                  (256 of each block)
//       m max= x[i, t]                     m max= x[i, t]
//
// It must come before the thread loops are bound, because they exceed one block's threads. No buffer inside
// may be in shared memory: each block has its own.
#include <algorithm>

#include "base/status.h"
#include "codegen/ir/visit.h"
#include "codegen/schedule/primitives/annotate.h"

namespace mycc {
namespace {

// OK when no other loop of this grid has a mark that assigns its iterations to blocks.
absl::Status CheckGrid(const Path& path) {
  const Stmt& grid = *std::find_if(path.nodes.begin(), path.nodes.end(),
                                   [](const Stmt& stmt) { return stmt->kind == StmtKind::kFor; });
  absl::Status status;
  VisitEach<For>(grid, [&](const For& loop) {
    const LoopMarks& marks = loop.marks;
    if (!marks.multicast_cluster && marks.persistent_blocks == 0 && marks.cluster_reduce_blocks == 0) return;
    status.Update(Refusal(loop.var->name,
                          " is already divided among thread blocks by persist, "
                          "stream_k, multicast_cluster or cluster_reduce"));
  });
  return status;
}

absl::Status CheckInside(const For& loop) {
  absl::Status status;
  VisitEach<Alloc>(loop.body, [&](const Alloc& alloc) {
    if (alloc.buffer->scope != Scope::kShared) return;
    status.Update(
        Refusal(alloc.buffer->name, " is in shared memory, which blocks do not share; expected registers"));
  });
  return status;
}

absl::Status CheckClusterReduce(const Marking& step) {
  MYCC_RETURN_IF_ERROR(CheckClusterBlocks(step.args.Int(1)));
  MYCC_RETURN_IF_ERROR(CheckGrid(step.path));
  return CheckInside(step.loop);
}

}  // namespace

constexpr LoopMark kClusterReduceMark = {
    .device = MarkedDevice::kHopper,
    .loop_kind = LoopKind::kGrid,
    .check = CheckClusterReduce,
    .set = [](const StepArgs& args, LoopMarks* marks) { marks->cluster_reduce_blocks = args.Int(1); },
};

}  // namespace mycc
