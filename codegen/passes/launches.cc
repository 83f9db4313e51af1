// Makes a Launch of each statement at the root of a GPU's lowered code: the size of its grid, its blocks and
// clusters follow from the loops, and launches that a GPU cannot execute are refused.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/integers.h"
#include "codegen/ir/function.h"
#include "codegen/ir/threads.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/thread_registers.h"

namespace mycc {
namespace {

constexpr int64_t kMostThreadsOfBlock = 1024;
constexpr int64_t kMostBlocks = (int64_t{1} << 31) - 1;
constexpr int kFirstArchWithOverlap = 90;  // a launch can begin while the one before it ends

// Shared memory belongs to the block, so it is not allocated inside thread loops.
absl::Status CheckSharedOutside(const Stmt& root, const For* thread_loop) {
  const Alloc* alloc = DynAs<Alloc>(root);
  if (alloc != nullptr && alloc->buffer->scope == Scope::kShared && thread_loop != nullptr) {
    return Refusal(alloc->buffer->name, " in shared memory is allocated inside the thread loop ",
                   thread_loop->var->name);
  }
  if (IsThreadLoop(root)) thread_loop = &As<For>(root);
  for (const Stmt& child : Children(root)) MYCC_RETURN_IF_ERROR(CheckSharedOutside(child, thread_loop));
  return absl::OkStatus();
}

absl::Status CheckLoops(const Stmt& inside) {
  absl::Status status = CheckSharedOutside(inside, nullptr);
  VisitEach<For>(inside, [&](const For& loop) {
    if (loop.loop_kind == LoopKind::kGrid) {
      status.Update(
          Refusal("block loop ", loop.var->name, " is inside other code; block loops are the outermost"));
    } else if (loop.loop_kind == LoopKind::kThread && !IsConstInt(loop.extent)) {
      status.Update(Refusal("thread loop ", loop.var->name, " has no constant extent"));
    }
  });
  return status;
}

// Blocks that reduce together divide thread loops among them, in whole warps; other code is executed by each
// block. `threads`: of all these blocks. `loop`: the innermost grid loop.
absl::Status CheckClusterReduce(const LaunchShape& shape, const For& loop, const Stmt& inside,
                                int64_t threads) {
  const std::string blocks =
      absl::StrCat(shape.cluster_reduce, " thread blocks of cluster_reduce on ", loop.var->name);
  if (shape.cluster > 1)
    return Refusal(
        blocks, " are a cluster, and so are the iterations of a multicast_cluster; expected one of the two");
  const int64_t whole_warps = shape.cluster_reduce * kThreadsOfWarp;
  if (threads % whole_warps != 0) {
    return Refusal(blocks, " cannot share ", threads, " threads; expected a multiple of ", whole_warps);
  }
  const std::vector<Stmt> path = PathTo(inside, [](const Stmt& stmt) {
    const Alloc* alloc = DynAs<Alloc>(stmt);
    return stmt->kind == StmtKind::kMma || stmt->kind == StmtKind::kCopy || stmt->kind == StmtKind::kRoles ||
           (alloc != nullptr && alloc->buffer->scope == Scope::kShared);
  });
  if (path.empty()) return absl::OkStatus();
  return Refusal(StmtName(path.back()), DynAs<Alloc>(path.back()) != nullptr ? " in shared memory" : "",
                 " belongs to one block, and cannot be used by ", blocks);
}

// `grid` are the launch's loops over blocks, `inside` is the code in them.
absl::StatusOr<LaunchShape> ShapeOf(const std::vector<const For*>& grid, const Stmt& inside) {
  LaunchShape shape;
  for (const For* loop : grid) {
    if (loop->marks.multicast_cluster) shape.cluster = loop->var->extent;
    shape.cluster_reduce = std::max(shape.cluster_reduce, loop->marks.cluster_reduce_blocks);
    shape.grid *= std::min(loop->var->extent, kMostBlocks + 1);
    if (shape.grid * shape.cluster_reduce > kMostBlocks)
      return Refusal("the grid has more blocks than the 2^31 - 1 that are possible");
    shape.min_blocks_per_sm = std::max(shape.min_blocks_per_sm, loop->marks.min_blocks_per_sm);
  }
  // Roles give each other registers, which the device's compiler allows in kernels with a limit alone.
  if (Contains(inside, StmtKind::kRoles)) shape.min_blocks_per_sm = 1;
  MYCC_RETURN_IF_ERROR(CheckLoops(inside));
  int64_t threads = ThreadsUnder(inside);
  if (shape.cluster_reduce > 1) {
    MYCC_RETURN_IF_ERROR(CheckClusterReduce(shape, *grid.back(), inside, threads));
    shape.cluster = shape.cluster_reduce;
    shape.grid *= shape.cluster_reduce;
  }
  threads /= shape.cluster_reduce;
  if (threads > kMostThreadsOfBlock) {
    return Refusal("a thread block of ", threads, " threads; at most ", kMostThreadsOfBlock, " are possible");
  }
  shape.threads = RoundUp(threads, kThreadsOfWarp);
  return shape;
}

}  // namespace

absl::StatusOr<Stmt> MakeLaunches(const Stmt& body, const Target& target) {
  const bool overlap = CudaArchOf(target) >= kFirstArchWithOverlap;
  const std::vector<Stmt> roots = StmtsOf(body);
  std::vector<Stmt> launches;
  for (const Stmt& root : roots) {
    Stmt inside;
    const std::vector<const For*> grid = GridLoopsOf(root, &inside);
    MYCC_ASSIGN_OR_RETURN(LaunchShape shape, ShapeOf(grid, inside));
    MYCC_RETURN_IF_ERROR(DistributeRegisters(inside, shape.threads * shape.cluster_reduce).status());
    shape.after_launch = overlap && !launches.empty();
    shape.before_launch = overlap && launches.size() + 1 < roots.size();
    launches.push_back(std::make_shared<Launch>(shape, root));
  }
  return MakeSeq(std::move(launches));
}

}  // namespace mycc
