// How loops of the IR are carried out: their kinds, and the marks that primitives leave on them for lowering.
// Thread rule: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mycc {

// How a loop's iterations are executed. To the interpreter all kinds mean the same, except that iterations of
// kParallel, kGrid and kThread loops must be independent (it may run them in any order).
//
// kGrid (`block` in traces and printed IR) and kThread exist on GPUs. An iteration of nested kGrid loops is a
// thread block, whose threads execute the code inside together. Nested kThread loops number the threads, the
// innermost fastest; the code inside is one thread's. The threads synchronize where the outermost of these
// loops ends. A kThread loop may carry a reduction into a tensor in registers: then all threads of the loop
// get the result.
enum class LoopKind : uint8_t { kSerial, kParallel, kVector, kUnroll, kGrid, kThread };
std::string_view LoopKindName(LoopKind kind);  // "serial"
bool ParseLoopKind(const std::string& name, LoopKind* kind);

// How the copies into shared memory under a loop overlap with the computation that reads them (set by the
// pipeline primitive, implemented by passes/pipeline_loops.cc).
enum class PipelineKind : uint8_t {
  kNone,
  kThreads,  // every thread copies ahead: cp.async into a ring of stages
  kBulk,  // a warp of its own issues bulk copies into a ring; the other warps compute (warp specialization)
};
struct LoopPipeline {
  PipelineKind kind = PipelineKind::kNone;
  int stages = 0;

  bool operator==(const LoopPipeline&) const = default;
};

// How the warps of a block divide a tile of a tensor-core instruction, along its rows and its columns;
// warpgroups, for an instruction of warpgroups.
struct WarpGrid {
  int rows = 1, columns = 1;

  bool operator==(const WarpGrid&) const = default;
};

// Stream-K: the iterations that do not divide evenly among persistent blocks are shared by steps of the
// pipelined loop inside, in `groups` groups of `members` blocks. No groups: whole iterations alone.
struct StreamKGroups {
  int64_t groups = 0, members = 0;

  bool operator==(const StreamKGroups&) const = default;
};

// Marks by which primitives ask lowering for a transformation of the loop.
struct LoopMarks {
  // Non-empty when lowering turns this loop and those inside it into one tile statement of that hardware
  // instruction (see schedule/instructions.h); set by the tensorize primitive.
  std::string instruction;
  WarpGrid warps;  // for tensor cores
  // On a CPU: the number of iterations of this loop by which the two operands are prefetched; 0: none.
  int64_t rows_ahead = 0, lanes_ahead = 0;
  bool fetches_sums = false;  // of tile registers: see Mma
  // On a CPU: stores of whole vectors to the function's outputs under this loop bypass the caches.
  bool nontemporal = false;
  // On a CPU: this loop's reads of inputs are prefetched for the next iteration of the enclosing loop.
  bool fetches_next = false;
  LoopPipeline pipeline;
  // For a kGrid loop: the number of thread blocks that share its iterations; 0: one block for each.
  int64_t persistent_blocks = 0;
  StreamKGroups stream_k;  // for such a loop
  // For a kGrid loop: the number of thread blocks that must fit on an SM, with its registers; 0: as many as
  // the assembler chooses.
  int64_t min_blocks_per_sm = 0;
  // For a kGrid loop: the number of thread blocks, a cluster, that execute each iteration together. The
  // thread loops inside number the threads of all of them. They reduce together, but share no data in memory.
  // 0: one block for each iteration.
  int64_t cluster_reduce_blocks = 0;
  // For a persistent loop: the groups of the block's warps that alternate on its iterations (ping-pong).
  int pingpong = 1;
  // For the outermost kGrid loop: its iterations are the thread blocks of one cluster, which run side by side
  // and send each other the tiles that all of them read.
  bool multicast_cluster = false;
};

}  // namespace mycc
