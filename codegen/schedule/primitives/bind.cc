// bind(l, vector): chooses how a loop's iterations are executed: parallel (over the CPU's threads), block and
// thread (over a GPU's), vector (lanes of vector registers, one access of several elements on a GPU), unroll,
// or serial.
//
//   for l: B   ->   parallel l: B
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/ir/block_guards.h"
#include "codegen/ir/threads.h"
#include "codegen/ir/visit.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

constexpr int64_t kMaxVector = 256;
constexpr int64_t kMaxUnroll = 512;
constexpr int64_t kMaxThreads = 1024;            // of a block
constexpr int64_t kMaxBlocks = (1LL << 31) - 1;  // of a grid

absl::Status CheckTarget(LoopKind kind, const Target& target) {
  const bool on_gpu = target.kind == TargetKind::kCuda;
  const bool fits =
      on_gpu ? kind != LoopKind::kParallel : kind != LoopKind::kGrid && kind != LoopKind::kThread;
  if (fits) return absl::OkStatus();
  return Refusal(LoopKindName(kind), " is for ",
                 on_gpu ? "CPUs; a GPU has block and thread" : "GPUs; a CPU has parallel");
}

absl::Status CheckVector(const For& loop) {
  if (loop.var->extent > kMaxVector) {
    return Refusal("extent ", loop.var->extent, " is more than ", kMaxVector, " lanes");
  }
  const bool innermost = !Contains(loop.body, StmtKind::kFor) && !Contains(loop.body, StmtKind::kAlloc);
  return innermost ? absl::OkStatus() : Refusal("a vector loop must be innermost");
}

absl::Status CheckIndependent(const For& loop) {
  if (!IsReduceLoop(loop)) return absl::OkStatus();
  return Refusal("the loop carries a reduction: its iterations write the same elements");
}

absl::Status CheckParallel(const Path& path) {
  MYCC_RETURN_IF_ERROR(CheckIndependent(path.loop()));
  const std::vector<const For*> around = LoopsOn(path);
  for (size_t i = 0; i + 1 < around.size(); ++i) {
    if (around[i]->loop_kind != LoopKind::kParallel) continue;
    if (DynAs<For>(around[i]->body) != around[i + 1]) {
      return Refusal("it is inside the parallel loop ", around[i]->var->name, ", but not its only statement");
    }
  }
  return absl::OkStatus();
}

// Block loops are the outermost of their nest, one directly inside the other.
absl::Status CheckBlock(const Path& path) {
  MYCC_RETURN_IF_ERROR(CheckIndependent(path.loop()));
  int64_t blocks = 1;
  const std::vector<const For*> around = LoopsOn(path);
  for (size_t i = 0; i < around.size(); ++i) {
    blocks *= std::min(around[i]->var->extent, kMaxBlocks + 1);
    if (blocks > kMaxBlocks) {
      return Refusal("the grid would have more than ", kMaxBlocks, " blocks");
    }
    if (i + 1 == around.size()) break;
    if (around[i]->loop_kind != LoopKind::kGrid) {
      return Refusal("it is inside loop ", around[i]->var->name, ", which is not bound to blocks");
    }
    if (DynAs<For>(around[i]->body) != around[i + 1]) {
      return Refusal("it is inside the block loop ", around[i]->var->name, ", but not its only statement");
    }
  }
  return absl::OkStatus();
}

// The number of thread blocks that execute each grid iteration on the path together.
int64_t BlocksThatReduce(const Path& path) {
  int64_t blocks = 1;
  for (const For* loop : LoopsOn(path)) blocks = std::max(blocks, loop->marks.cluster_reduce_blocks);
  return blocks;
}

// Thread loops must be inside block loops. They may carry a reduction whose values can be combined in any
// order.
absl::Status CheckThread(const Path& path) {
  const For& loop = path.loop();
  int64_t threads = loop.var->extent * ThreadsUnder(loop.body);
  for (const For* around : LoopsOn(path)) {
    if (around != &loop && around->loop_kind == LoopKind::kThread) threads *= around->var->extent;
    if (around->loop_kind != LoopKind::kVector) continue;
    return Refusal("it is inside the vector loop ", around->var->name);
  }
  const int64_t blocks = BlocksThatReduce(path), most = blocks * kMaxThreads;
  if (threads > most || loop.var->extent > most) {
    return Refusal(blocks == 1 ? "the block" : absl::StrCat("the ", blocks, " blocks of cluster_reduce"),
                   " would have ", threads, " threads; at most ", most, " are possible");
  }
  const auto is_grid = [](const For& inner) { return inner.loop_kind == LoopKind::kGrid; };
  if (const For* grid = FirstOf<For>(loop.body, is_grid))
    return Refusal("the block loop ", grid->var->name, " stands inside");
  const auto is_shared = [](const Alloc& alloc) { return alloc.buffer->scope == Scope::kShared; };
  if (const Alloc* shared = FirstOf<Alloc>(loop.body, is_shared))
    return Refusal(shared->buffer->name, ", which the threads of a block share, is allocated inside");
  for (const Block* block : BlocksUnder(loop.body)) {
    const auto is_its_own = [&](const Alloc& alloc) { return alloc.buffer == block->out; };
    if (!CarriesReduction(*block, loop) || !AnyOf<Alloc>(loop.body, is_its_own)) continue;
    return Refusal("iterations depend on each other through the partial sums of ", block->name,
                   ", which accumulates inside the loop");
  }
  return absl::OkStatus();
}

absl::Status Check(const Path& path, LoopKind kind) {
  const For& loop = path.loop();
  switch (kind) {
    case LoopKind::kVector: return CheckVector(loop);
    case LoopKind::kParallel: return CheckParallel(path);
    case LoopKind::kGrid: return CheckBlock(path);
    case LoopKind::kThread: return CheckThread(path);
    case LoopKind::kSerial: return absl::OkStatus();
    case LoopKind::kUnroll: break;
  }
  if (loop.var->extent <= kMaxUnroll) return absl::OkStatus();
  return Refusal("extent ", loop.var->extent, " is more than ", kMaxUnroll, " copies");
}

}  // namespace

absl::StatusOr<Function> Bind(const Function& function, const Target& target, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindLoop(function, args.Name(0)));
  LoopKind kind;
  if (!ParseLoopKind(args.Name(1), &kind)) {
    return Refusal(args.Name(1),
                   " is not a loop kind; expected serial, parallel, vector, unroll, block or thread");
  }
  MYCC_RETURN_IF_ERROR(CheckTarget(kind, target));
  MYCC_RETURN_IF_ERROR(Check(path, kind));
  const For& loop = path.loop();
  return WithBody(function, ReplaceAt(path, loop.With({.loop_kind = kind})));
}

}  // namespace mycc
