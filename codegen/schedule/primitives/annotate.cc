// Marks of a GPU's loops: the thread blocks that execute them, and the copies that run ahead.
//
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
//
// passes/pipeline_loops.cc implements the other marks, after the copies are known; min_blocks_per_sm becomes
// a launch bound of the kernel.
//
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
#include "codegen/schedule/primitives/annotate.h"

#include <algorithm>
#include <string>

#include "base/status.h"
#include "codegen/ir/visit.h"
#include "codegen/target/instructions.h"

namespace mycc {
namespace {

bool IsHopper(const Target& target) {
  return target.kind == TargetKind::kCuda && CudaArchOf(target) / 10 == 9;
}

absl::Status CheckDevice(MarkedDevice device, const Target& target) {
  const bool on_gpu = target.kind == TargetKind::kCuda;
  std::string_view expected;
  if (device == MarkedDevice::kCpu && on_gpu) expected = "a CPU";
  if (device == MarkedDevice::kGpu && !on_gpu) expected = "a GPU";
  if (device == MarkedDevice::kHopper && !IsHopper(target)) expected = "sm_90a";
  if (expected.empty()) return absl::OkStatus();
  return Refusal("the target is ", PrintTarget(target), "; expected ", expected);
}

absl::Status CheckLoop(const LoopMark& mark, const For& loop) {
  if (!mark.loop_kind || loop.loop_kind == *mark.loop_kind) return absl::OkStatus();
  return Refusal("the loop is ", LoopKindName(loop.loop_kind), "; expected a ", LoopKindName(*mark.loop_kind),
                 " loop");
}

absl::Status CheckNumber(const MarkNumber& number, const StepArgs& args) {
  if (number.at == 0) return absl::OkStatus();
  const int64_t value = args.Int(number.at);
  if (value >= number.least && value <= number.most) return absl::OkStatus();
  return Refusal(value, " ", number.unit, "; expected ", number.least, " to ", number.most);
}

constexpr int64_t kMaxStreamBlocks = 4096;

bool IsInShared(const Alloc& alloc) { return alloc.buffer->scope == Scope::kShared; }

absl::Status CheckPipeline(const Marking& step) {
  const std::string& kind = step.args.Name(1);
  if (kind != "threads" && kind != "bulk") {
    return Refusal(kind, " is not a kind of pipeline; expected threads or bulk");
  }
  if (kind == "bulk" && !IsHopper(step.target)) {
    return Refusal("kind bulk needs the copy engine of sm_90a; the target is ", step.target.arch);
  }
  const Stmt* inner = &step.loop.body;
  for (; DynAs<Alloc>(*inner); inner = &As<Alloc>(*inner).body) {
    if (IsInShared(As<Alloc>(*inner))) return absl::OkStatus();
  }
  return Refusal("nothing is copied into shared memory in the loop; stage its operands first");
}

absl::Status CheckPersist(const Marking& step) {
  const int64_t blocks = step.args.Int(1), iterations = step.loop.var->extent;
  if (blocks >= 1 && blocks <= iterations) return absl::OkStatus();
  return Refusal(blocks, " blocks for ", iterations,
                 " iterations; expected at least 1, and at most one for each iteration");
}

absl::Status CheckStreamK(const Marking& step) {
  const int64_t blocks = step.args.Int(1), groups = step.args.Int(2), members = step.args.Int(3);
  if (groups <= blocks / members) return absl::OkStatus();
  return Refusal(blocks, " blocks with ", groups, " groups of ", members, "; expected at most ", blocks,
                 " members in all");
}

absl::Status CheckPingpong(const Marking& step) {
  if (step.loop.marks.persistent_blocks > 0) return absl::OkStatus();
  return Refusal("pingpong is for persistent loops; persist it first");
}

// OK for a power of two from 2 to 8, which runs as a cluster on every device of the architecture.
absl::Status CheckClusterBlocks(int64_t blocks) {
  constexpr int64_t kMostBlocks = 8;
  if (blocks >= 2 && blocks <= kMostBlocks && (blocks & (blocks - 1)) == 0) return absl::OkStatus();
  return Refusal("a cluster of ", blocks, " blocks; expected a power of two from 2 to ", kMostBlocks);
}

absl::Status CheckMulticast(const Marking& step) {
  if (LoopsOn(step.path).front() != &step.loop)
    return Refusal("a cluster is of thread blocks; expected the outermost block loop");
  return CheckClusterBlocks(step.loop.var->extent);
}

// OK when no other loop of this grid has a mark that assigns its iterations to blocks.
absl::Status CheckGrid(const Path& path) {
  const Stmt& grid =
      *std::ranges::find_if(path.nodes, [](const Stmt& stmt) { return stmt->kind == StmtKind::kFor; });
  const For* divided = FirstOf<For>(grid, [](const For& loop) {
    const LoopMarks& marks = loop.marks;
    return marks.multicast_cluster || marks.persistent_blocks != 0 || marks.cluster_reduce_blocks != 0;
  });
  if (divided == nullptr) return absl::OkStatus();
  return Refusal(divided->var->name,
                 " is already divided among thread blocks by persist, "
                 "stream_k, multicast_cluster or cluster_reduce");
}

absl::Status CheckInside(const For& loop) {
  const Alloc* shared = FirstOf<Alloc>(loop.body, IsInShared);
  if (shared == nullptr) return absl::OkStatus();
  return Refusal(shared->buffer->name, " is in shared memory, which blocks do not share; expected registers");
}

absl::Status CheckClusterReduce(const Marking& step) {
  MYCC_RETURN_IF_ERROR(CheckClusterBlocks(step.args.Int(1)));
  MYCC_RETURN_IF_ERROR(CheckGrid(step.path));
  return CheckInside(step.loop);
}

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
    if (IsParam(step.function, block->out, ParamKind::kOutput)) return absl::OkStatus();
  }
  return Refusal("no block under ", step.loop.var->name, " writes an output of the workload");
}

}  // namespace

absl::StatusOr<Function> AnnotateLoop(const Function& function, const Target& target, const StepArgs& args,
                                      const LoopMark& mark) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindLoop(function, args.Name(0)));
  const For& loop = path.loop();
  MYCC_RETURN_IF_ERROR(CheckDevice(mark.device, target));
  MYCC_RETURN_IF_ERROR(CheckLoop(mark, loop));
  for (const MarkNumber& number : mark.numbers) MYCC_RETURN_IF_ERROR(CheckNumber(number, args));
  if (mark.check != nullptr) MYCC_RETURN_IF_ERROR(mark.check({function, target, args, path, loop}));
  const Stmt marked = Changed(loop, [&](For* changed) { mark.set(args, &changed->marks); });
  return WithBody(function, ReplaceAt(path, marked));
}

constexpr LoopMark kPipelineMark = {
    .device = MarkedDevice::kGpu,
    .loop_kind = LoopKind::kSerial,  // its iterations must follow each other
    .numbers = {MarkNumber{2, 2, 16, "stages"}},
    .check = CheckPipeline,
    .set =
        [](const StepArgs& args, LoopMarks* marks) {
          const bool bulk = args.Name(1) == "bulk";
          marks->pipeline = {bulk ? PipelineKind::kBulk : PipelineKind::kThreads,
                             static_cast<int>(args.Int(2))};
        },
};

constexpr LoopMark kPersistMark = {
    .loop_kind = LoopKind::kGrid,
    .check = CheckPersist,
    .set = [](const StepArgs& args, LoopMarks* marks) { marks->persistent_blocks = args.Int(1); },
};

constexpr LoopMark kStreamKMark = {
    .loop_kind = LoopKind::kGrid,
    .numbers = {MarkNumber{1, 1, kMaxStreamBlocks, "blocks"}, MarkNumber{2, 1, kMaxStreamBlocks, "groups"},
                MarkNumber{3, 1, kMaxStreamBlocks, "members of a group"}},
    .check = CheckStreamK,
    .set =
        [](const StepArgs& args, LoopMarks* marks) {
          marks->persistent_blocks = args.Int(1);
          marks->stream_k = {args.Int(2), args.Int(3)};
        },
};

constexpr LoopMark kPingpongMark = {
    .numbers = {MarkNumber{1, 1, 3, "groups"}},
    .check = CheckPingpong,
    .set = [](const StepArgs& args, LoopMarks* marks) { marks->pingpong = static_cast<int>(args.Int(1)); },
};

constexpr LoopMark kMinBlocksPerSmMark = {
    .loop_kind = LoopKind::kGrid,
    .numbers = {MarkNumber{1, 1, 32, "blocks on an SM"}},
    .set = [](const StepArgs& args, LoopMarks* marks) { marks->min_blocks_per_sm = args.Int(1); },
};

constexpr LoopMark kMulticastClusterMark = {
    .device = MarkedDevice::kHopper,
    .loop_kind = LoopKind::kGrid,
    .check = CheckMulticast,
    .set = [](const StepArgs&, LoopMarks* marks) { marks->multicast_cluster = true; },
};

constexpr LoopMark kClusterReduceMark = {
    .device = MarkedDevice::kHopper,
    .loop_kind = LoopKind::kGrid,
    .check = CheckClusterReduce,
    .set = [](const StepArgs& args, LoopMarks* marks) { marks->cluster_reduce_blocks = args.Int(1); },
};

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
