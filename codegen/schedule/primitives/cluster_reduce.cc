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

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/ir/visit.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/tree.h"
#include "codegen/target/target.h"

namespace mycc {
namespace {

constexpr int64_t kMostBlocks = 8;  // a cluster of 8 runs on every device of the architecture

// OK when no other loop of this grid has a mark that assigns its iterations to blocks.
absl::Status CheckGrid(const Path& path) {
  const Stmt& grid = *std::find_if(path.nodes.begin(), path.nodes.end(),
                                   [](const Stmt& stmt) { return stmt->kind == StmtKind::kFor; });
  absl::Status status;
  VisitStmts(grid, [&](const Stmt& stmt) {
    const For* loop = DynAs<For>(stmt);
    if (loop == nullptr) return true;
    const LoopMarks& marks = loop->marks;
    if (!marks.multicast_cluster && marks.persistent_blocks == 0 && marks.cluster_reduce_blocks == 0)
      return true;
    status.Update(
        absl::FailedPreconditionError(absl::StrCat(loop->var->name,
                                                   " is already divided among thread blocks by persist, "
                                                   "stream_k, multicast_cluster or cluster_reduce")));
    return true;
  });
  return status;
}

absl::Status CheckInside(const For& loop) {
  absl::Status status;
  VisitStmts(loop.body, [&](const Stmt& stmt) {
    const Alloc* alloc = DynAs<Alloc>(stmt);
    if (alloc == nullptr || alloc->buffer->scope != Scope::kShared) return true;
    status.Update(absl::FailedPreconditionError(absl::StrCat(
        alloc->buffer->name, " is in shared memory, which blocks do not share; expected registers")));
    return true;
  });
  return status;
}

}  // namespace

absl::StatusOr<Function> ClusterReduce(const Function& function, const Target& target, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindLoop(function, args.Name(0)));
  const For& loop = path.loop();
  const int64_t blocks = args.Int(1);
  if (target.kind != TargetKind::kCuda || CudaArchOf(target) / 10 != 9) {
    return absl::FailedPreconditionError(
        absl::StrCat("cluster_reduce needs the clusters of sm_90a; the target is ", PrintTarget(target)));
  }
  if (loop.loop_kind != LoopKind::kGrid) {
    return absl::FailedPreconditionError(
        absl::StrCat("the loop is ", std::string(LoopKindName(loop.loop_kind)), "; expected a block loop"));
  }
  if (blocks < 2 || blocks > kMostBlocks || (blocks & (blocks - 1)) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(blocks, " blocks; expected a power of two from 2 to ", kMostBlocks));
  }
  MYCC_RETURN_IF_ERROR(CheckGrid(path));
  MYCC_RETURN_IF_ERROR(CheckInside(loop));
  LoopMarks marks = loop.marks;
  marks.cluster_reduce_blocks = blocks;
  return WithMarks(function, path, std::move(marks));
}

}  // namespace mycc
