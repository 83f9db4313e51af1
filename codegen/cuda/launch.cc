// Analyses a launch in one walk over its loops, places its buffers, and refuses launches that a GPU cannot
// execute.
#include "codegen/cuda/launch.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/cuda/barrier_plan.h"
#include "codegen/ir/function.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"

namespace mycc {
namespace {

constexpr int64_t kWarpThreads = 32;
constexpr int64_t kMaxThreads = 1024;
constexpr int64_t kMuchMore = 4;
constexpr int64_t kMaxLoads = int64_t{1} << 50;
constexpr int64_t kMaxGrid = (int64_t{1} << 31) - 1;

// Every buffer that a statement and those inside it read or write.
std::unordered_set<const BufferNode*> BuffersUnder(const Stmt& root) {
  std::unordered_set<const BufferNode*> used;
  VisitStmts(root, [&](const Stmt& stmt) {
    ForEachBuffer(stmt, [&](const Buffer& buffer) { used.insert(buffer.get()); });
    return true;
  });
  return used;
}

// Counts the executed loads of each buffer, over all threads.
void CountLoads(const Stmt& root, int64_t times, std::unordered_map<const BufferNode*, int64_t>* loads) {
  if (const For* loop = DynAs<For>(root)) times = std::min(times * loop->var->extent, kMaxLoads);
  std::unordered_set<const ExprNode*> counted;  // a load that occurs twice in a statement counts once
  ForEachExpr(root, [&](const Expr& expr) {
    Visit(expr, [&](const ExprNode& e) {
      if (e.op == Op::kLoad && counted.insert(&e).second) (*loads)[e.buffer.get()] += times;
    });
  });
  for (const Stmt& child : Children(root)) CountLoads(child, times, loads);
}

// Input tensors whose elements the launch reads once (less than twice, to allow for partial tiles at the
// edges). Their cache lines are evicted first. Only inputs much larger than the outputs count: for others the
// gain is smaller than the cost of evicting half-read lines.
std::unordered_set<const BufferNode*> ReadOnce(const Launch& launch) {
  std::unordered_map<const BufferNode*, int64_t> loads;
  CountLoads(launch.body, launch.grid / launch.cluster_reduce, &loads);
  int64_t written = 0;
  for (const LaunchBuffer& buffer : launch.buffers) written += buffer.read_only ? 0 : buffer.buffer->bytes();
  std::unordered_set<const BufferNode*> once;
  for (const LaunchBuffer& buffer : launch.buffers) {
    if (buffer.buffer->bytes() < kMuchMore * written) continue;
    const int64_t elements = std::max<int64_t>(buffer.buffer->num_elements(), 1);
    if (buffer.read_only && loads[buffer.buffer.get()] < 2 * elements) once.insert(buffer.buffer.get());
  }
  return once;
}

// Shared memory belongs to the block, so it is not allocated inside thread loops.
absl::Status CheckSharedOutside(const Stmt& root, const For* thread_loop) {
  const Alloc* alloc = DynAs<Alloc>(root);
  if (alloc != nullptr && alloc->buffer->scope == Scope::kShared && thread_loop != nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(alloc->buffer->name,
                                                      " in shared memory is allocated inside "
                                                      "the thread loop ",
                                                      thread_loop->var->name));
  }
  if (IsThreadLoop(root)) thread_loop = &As<For>(root);
  for (const Stmt& child : Children(root)) MYCC_RETURN_IF_ERROR(CheckSharedOutside(child, thread_loop));
  return absl::OkStatus();
}

absl::Status CheckLoops(const Stmt& root) {
  absl::Status status = CheckSharedOutside(root, nullptr);
  VisitStmts(root, [&](const Stmt& stmt) {
    const For* loop = DynAs<For>(stmt);
    if (loop == nullptr) return true;
    const bool bound = loop->loop_kind == LoopKind::kGrid || loop->loop_kind == LoopKind::kThread;
    if (loop->loop_kind == LoopKind::kGrid) {
      status.Update(absl::FailedPreconditionError(absl::StrCat(
          "block loop ", loop->var->name, " is inside other code; block loops are the outermost")));
    }
    if (bound && !IsConstInt(loop->extent)) {
      status.Update(absl::FailedPreconditionError(absl::StrCat(
          std::string(LoopKindName(loop->loop_kind)), " loop ", loop->var->name, " has no constant extent")));
    }
    return true;
  });
  return status;
}

// Blocks that reduce together divide thread loops among them, in whole warps; other code is executed by each
// block. `threads`: of all these blocks.
absl::Status CheckClusterReduce(const Launch& launch, int64_t threads) {
  const std::string blocks = absl::StrCat(launch.cluster_reduce, " thread blocks of cluster_reduce on ",
                                          launch.blocks.back()->var->name);
  if (launch.cluster > 1)
    return absl::FailedPreconditionError(absl::StrCat(
        blocks, " are a cluster, and so are the iterations of a multicast_cluster; expected one of the two"));
  const int64_t whole_warps = launch.cluster_reduce * kWarpThreads;
  if (threads % whole_warps != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(blocks, " cannot share ", threads, " threads; expected a multiple of ", whole_warps));
  }
  absl::Status status;
  VisitStmts(launch.body, [&](const Stmt& stmt) {
    const Alloc* alloc = DynAs<Alloc>(stmt);
    const bool shared = alloc != nullptr && alloc->buffer->scope == Scope::kShared;
    if (shared || stmt->kind == StmtKind::kMma || stmt->kind == StmtKind::kCopy ||
        stmt->kind == StmtKind::kRoles) {
      status.Update(absl::FailedPreconditionError(
          absl::StrCat(StmtName(stmt), shared ? " in shared memory" : "",
                       " belongs to one block, and cannot be used by ", blocks)));
    }
    return true;
  });
  return status;
}

absl::StatusOr<Launch> LaunchOf(const Stmt& root, const std::vector<LaunchBuffer>& buffers) {
  Launch launch;
  launch.body = root;
  while (const For* loop = DynAs<For>(launch.body)) {
    if (loop->loop_kind != LoopKind::kGrid) break;
    if (loop->marks.multicast_cluster) launch.cluster = loop->var->extent;
    launch.cluster_reduce = std::max(launch.cluster_reduce, loop->marks.cluster_reduce_blocks);
    launch.blocks.push_back(loop);
    launch.grid *= std::min(loop->var->extent, kMaxGrid + 1);
    if (launch.grid * launch.cluster_reduce > kMaxGrid)
      return absl::FailedPreconditionError("the grid has more blocks than the 2^31 - 1 that are possible");
    launch.min_blocks_per_sm = std::max(launch.min_blocks_per_sm, loop->marks.min_blocks_per_sm);
    launch.body = loop->body;
  }
  MYCC_RETURN_IF_ERROR(CheckLoops(launch.body));
  int64_t threads = ThreadsUnder(launch.body);
  if (launch.cluster_reduce > 1) {
    MYCC_RETURN_IF_ERROR(CheckClusterReduce(launch, threads));
    launch.cluster = launch.cluster_reduce;
    launch.grid *= launch.cluster_reduce;
  }
  threads /= launch.cluster_reduce;
  if (threads > kMaxThreads) {
    return absl::FailedPreconditionError(
        absl::StrCat("a thread block of ", threads, " threads; at most ", kMaxThreads, " are possible"));
  }
  launch.threads = (threads + kWarpThreads - 1) / kWarpThreads * kWarpThreads;
  const auto used = BuffersUnder(launch.body);
  for (const LaunchBuffer& buffer : buffers) {
    if (used.count(buffer.buffer.get()) != 0) launch.buffers.push_back(buffer);
  }
  launch.read_once = ReadOnce(launch);
  launch.shared = PlanShared(launch.body);
  launch.barriers_before = PlanBarriers(launch.body, launch.shared);
  MYCC_ASSIGN_OR_RETURN(launch.registers,
                        DistributeRegisters(launch.body, launch.threads * launch.cluster_reduce));
  return launch;
}

// The register bytes of one element of the widest tensor that threads combine; 0 when there is none.
int64_t CombinedBytes(const Launch& launch) {
  int64_t element = 0;
  VisitStmts(launch.body, [&](const Stmt& stmt) {
    // In registers narrow types are as wide as f32.
    if (const Combine* combine = DynAs<Combine>(stmt))
      element = std::max<int64_t>(element, std::max(4, DTypeBytes(combine->buffer->dtype)));
    return true;
  });
  return element;
}

}  // namespace

int64_t ScratchBytes(const Launch& launch) {
  return launch.threads > kWarpThreads ? CombinedBytes(launch) * launch.threads : 0;
}

int64_t ScratchOffset(const Launch& launch) { return (launch.shared.bytes + 15) / 16 * 16; }

int64_t ReceivedBytes(const Launch& launch) {
  return launch.cluster_reduce > 1 ? kReceiveBuffers * CombinedBytes(launch) * launch.cluster_reduce : 0;
}

int64_t ReceivedOffset(const Launch& launch) { return ScratchOffset(launch) + ScratchBytes(launch); }

absl::StatusOr<std::vector<Launch>> LaunchesOf(const Stmt& body, const std::vector<LaunchBuffer>& buffers,
                                               bool overlap) {
  std::vector<Launch> launches;
  const std::vector<Stmt> roots =
      body->kind == StmtKind::kSeq ? As<Seq>(body).stmts : std::vector<Stmt>{body};
  for (const Stmt& root : roots) {
    MYCC_ASSIGN_OR_RETURN(Launch launch, LaunchOf(root, buffers));
    launch.after_launch = overlap && !launches.empty();
    launch.before_launch = overlap && launches.size() + 1 < roots.size();
    launches.push_back(std::move(launch));
  }
  return launches;
}

absl::StatusOr<LoweredFunction> WithBarriers(const LoweredFunction& lowered) {
  LoweredFunction with_barriers = lowered;
  for (Stmt* const body : {&with_barriers.kernel.body, &with_barriers.pack.body}) {
    MYCC_ASSIGN_OR_RETURN(const std::vector<Launch> launches, LaunchesOf(*body, {}, /*overlap=*/false));
    for (const Launch& launch : launches) *body = WithBarriersBefore(*body, launch.barriers_before);
  }
  return with_barriers;
}

}  // namespace mycc
