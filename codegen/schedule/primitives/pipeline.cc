// pipeline(l, kind, stages): the copies into shared memory at the start of loop l run ahead of the
// computation that reads them, through a ring of `stages` tiles. `threads`: every thread copies (cp.async).
// `bulk`: one warp issues bulk copies (TMA) and the others compute (warp specialization); it needs Hopper's
// copy engine.
//
// persist(l, n): n thread blocks execute all iterations of the block loop l, each of them several in turn.
//
// stream_k(l, n, g, m): n thread blocks execute the iterations of the block loop l. Iterations that do not
// divide evenly are shared among g groups of m blocks by steps of the pipelined loop inside (stream-K).
// Partial sums of several blocks are combined through memory.
//
// pingpong(l, n): n groups of warps, each with its own tile, take the iterations of the persistent loop l in
// turn: one multiplies while the others compute their epilogues.
//
// min_blocks_per_sm(l, n): at least n thread blocks of the block loop l fit on an SM, which limits the
// registers of each thread. More blocks hide more latency; fewer blocks have more registers each.
//
// multicast_cluster(l): the iterations of the block loop l, the outermost of its nest, are the thread blocks
// of one cluster. They run at the same time. Each copies a part of the tiles that all of them read, to all of
// them (multicast). It needs Hopper's copy engine.
//
// All of these mark the loop. passes/pipeline_loops.cc implements the marks, after the copies are known;
// min_blocks_per_sm becomes a launch bound of the kernel.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/tree.h"
#include "codegen/target/target.h"

namespace mycc {
namespace {

constexpr int64_t kMaxStages = 16, kMaxGroups = 3, kMaxStreamBlocks = 4096;

absl::Status CheckArguments(PipelineKind kind, int64_t stages, const Target& target) {
  if (stages < 2 || stages > kMaxStages)
    return absl::FailedPreconditionError(absl::StrCat(stages, " stages; expected 2 to ", kMaxStages));
  if (kind == PipelineKind::kThreads || CudaArchOf(target) / 10 == 9) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("kind bulk needs the copy engine of sm_90a; the target is ", target.arch));
}

// Copies into shared memory directly in the loop's body.
bool HasStagedCopies(const For& loop) {
  bool staged = false;
  Stmt inner = loop.body;
  while (const Alloc* alloc = DynAs<Alloc>(inner)) {
    staged |= alloc->buffer->scope == Scope::kShared;
    inner = alloc->body;
  }
  return staged;
}

absl::Status CheckBlockLoop(const For& loop) {
  if (loop.loop_kind == LoopKind::kGrid) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the loop is ", std::string(LoopKindName(loop.loop_kind)),
                   "; only block loops can be executed by another number of blocks"));
}

}  // namespace

absl::StatusOr<Function> PipelineLoop(const Function& function, const Target& target, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindLoop(function, args.Name(0)));
  const For& loop = path.loop();
  if (target.kind != TargetKind::kCuda) return absl::FailedPreconditionError("pipelines are for GPUs");
  LoopMarks marks = loop.marks;
  if (args.Name(1) == "threads") {
    marks.pipeline.kind = PipelineKind::kThreads;
  } else if (args.Name(1) == "bulk") {
    marks.pipeline.kind = PipelineKind::kBulk;
  } else {
    return absl::FailedPreconditionError(
        absl::StrCat(args.Name(1), " is not a kind of pipeline; expected threads or bulk"));
  }
  MYCC_RETURN_IF_ERROR(CheckArguments(marks.pipeline.kind, args.Int(2), target));
  marks.pipeline.stages = static_cast<int>(args.Int(2));
  if (loop.loop_kind != LoopKind::kSerial)
    return absl::FailedPreconditionError(absl::StrCat("the loop is ",
                                                      std::string(LoopKindName(loop.loop_kind)),
                                                      "; its iterations must follow each other"));
  if (!HasStagedCopies(loop))
    return absl::FailedPreconditionError(
        "nothing is copied into shared memory in the loop; stage its operands first");
  return WithMarks(function, path, std::move(marks));
}

absl::StatusOr<Function> Persist(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindLoop(function, args.Name(0)));
  const For& loop = path.loop();
  MYCC_RETURN_IF_ERROR(CheckBlockLoop(loop));
  if (args.Int(1) < 1 || args.Int(1) > loop.var->extent) {
    return absl::FailedPreconditionError(
        absl::StrCat(args.Int(1), " blocks for ", loop.var->extent,
                     " iterations; expected at least 1, and at most one for each iteration"));
  }
  LoopMarks marks = loop.marks;
  marks.persistent_blocks = args.Int(1);
  return WithMarks(function, path, std::move(marks));
}

absl::StatusOr<Function> StreamK(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindLoop(function, args.Name(0)));
  const For& loop = path.loop();
  MYCC_RETURN_IF_ERROR(CheckBlockLoop(loop));
  const int64_t blocks = args.Int(1), groups = args.Int(2), members = args.Int(3);
  if (blocks < 1 || blocks > kMaxStreamBlocks || groups < 1 || members < 1 || groups * members > blocks) {
    return absl::FailedPreconditionError(
        absl::StrCat(blocks, " blocks with ", groups, " groups of ", members, "; expected 1 to ",
                     kMaxStreamBlocks, " blocks, and at most that many members in all groups together"));
  }
  LoopMarks marks = loop.marks;
  marks.persistent_blocks = blocks;
  marks.stream_k = {groups, members};
  return WithMarks(function, path, std::move(marks));
}

absl::StatusOr<Function> MinBlocksPerSm(const Function& function, const Target&, const StepArgs& args) {
  constexpr int64_t kMostBlocks = 32;
  MYCC_ASSIGN_OR_RETURN(const Path path, FindLoop(function, args.Name(0)));
  const For& loop = path.loop();
  if (loop.loop_kind != LoopKind::kGrid)
    return absl::FailedPreconditionError(absl::StrCat(
        "the loop is ", std::string(LoopKindName(loop.loop_kind)), "; only thread blocks share an SM"));
  if (args.Int(1) < 1 || args.Int(1) > kMostBlocks) {
    return absl::FailedPreconditionError(
        absl::StrCat(args.Int(1), " blocks on an SM; expected 1 to ", kMostBlocks));
  }
  LoopMarks marks = loop.marks;
  marks.min_blocks_per_sm = args.Int(1);
  return WithMarks(function, path, std::move(marks));
}

absl::StatusOr<Function> MulticastCluster(const Function& function, const Target& target,
                                          const StepArgs& args) {
  constexpr int64_t kMostBlocks = 8;  // a cluster of 8 runs on every device of the architecture
  MYCC_ASSIGN_OR_RETURN(const Path path, FindLoop(function, args.Name(0)));
  const For& loop = path.loop();
  if (target.kind != TargetKind::kCuda || CudaArchOf(target) / 10 != 9)
    return absl::FailedPreconditionError(
        absl::StrCat("clusters need the copy engine of sm_90a; the target is ", PrintTarget(target)));
  if (loop.loop_kind != LoopKind::kGrid || LoopsOn(path).front() != &loop)
    return absl::FailedPreconditionError("a cluster is of thread blocks: expected the outermost block loop");
  const int64_t blocks = loop.var->extent;
  if (blocks < 2 || blocks > kMostBlocks || (blocks & (blocks - 1)) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("a cluster of ", blocks, " blocks; expected a power of two from 2 to ", kMostBlocks));
  }
  LoopMarks marks = loop.marks;
  marks.multicast_cluster = true;
  return WithMarks(function, path, std::move(marks));
}

absl::StatusOr<Function> Pingpong(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindLoop(function, args.Name(0)));
  const For& loop = path.loop();
  if (loop.marks.persistent_blocks == 0)
    return absl::FailedPreconditionError("pingpong is for persistent loops; persist it first");
  if (args.Int(1) < 1 || args.Int(1) > kMaxGroups)
    return absl::FailedPreconditionError(absl::StrCat(args.Int(1), " groups; expected 1 to ", kMaxGroups));
  LoopMarks marks = loop.marks;
  marks.pingpong = static_cast<int>(args.Int(1));
  return WithMarks(function, path, std::move(marks));
}

}  // namespace mycc
