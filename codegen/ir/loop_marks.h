// How loops of the IR are carried out: their kinds, and the marks that primitives leave on them for lowering.
// Thread rule: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mycc {

// How a loop's iterations are carried out. All kinds mean the same to the interpreter, except that iterations
// of kParallel, kGrid and kThread loops must be independent (it may run them in any order).
//
// kGrid (`block` in traces and printed IR) and kThread are of GPUs. An iteration of nested kGrid loops is a
// thread block; the block's threads carry out the code inside together. Nested kThread loops number the
// threads, the innermost fastest, and inside them the code is one thread's; they meet where the outermost of
// them ends: earlier writes are visible after. A kThread loop may carry a reduction into a tensor in
// registers: then all threads of the loop get the result.
enum class LoopKind : uint8_t { kSerial, kParallel, kVector, kUnroll, kGrid, kThread };
std::string_view LoopKindName(LoopKind kind);  // "serial"
bool ParseLoopKind(const std::string& name, LoopKind* kind);

// How the copies into shared memory under a loop overlap with the computing that reads them (set by the
// pipeline primitive, carried out by passes/pipeline_loops.cc).
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

// How the warps of a block share a tile of a tensor-core instruction, along its rows and its columns; of an
// instruction that a warpgroup carries out, warpgroups.
struct WarpGrid {
  int rows = 1, columns = 1;

  bool operator==(const WarpGrid&) const = default;
};

// Persistent blocks share out iterations that are left over when all have as many, by steps of the pipelined
// loop inside (stream-K), in `groups` groups of `members`. No groups: whole iterations alone.
struct StreamKGroups {
  int64_t groups = 0, members = 0;

  bool operator==(const StreamKGroups&) const = default;
};

// Marks that primitives leave on a loop for lowering to carry out.
struct LoopMarks {
  // Non-empty when this loop and those inside it are to become one tile statement of that hardware
  // instruction (see schedule/instructions.h); set by the tensorize primitive.
  std::string instruction;
  WarpGrid warps;  // of tensor cores
  // A CPU's: iterations of this loop by which the rows' operand and the lanes' are fetched ahead; 0: not.
  int64_t rows_ahead = 0, lanes_ahead = 0;
  bool fetches_sums = false;  // of tile registers: see Mma
  // Whole vectors stored to the function's outputs under this loop go to memory, past a CPU's caches.
  bool nontemporal = false;
  // A CPU's: the inputs that this loop reads are fetched for the next iteration of the loop around, too.
  bool fetches_next = false;
  LoopPipeline pipeline;
  // A kGrid loop's: the thread blocks that run all its iterations, one after the other; 0: one block each.
  int64_t persistent_blocks = 0;
  StreamKGroups stream_k;  // of such a loop
  // A kGrid loop's: thread blocks that are to share an SM, and its registers; 0: as many as the assembler
  // chooses.
  int64_t min_blocks_per_sm = 0;
  // A kGrid loop's: the thread blocks, a cluster, that carry out each of its iterations together. Thread
  // loops inside number the threads of all of them; these reduce together, but hand on nothing in memory. 0:
  // one block each.
  int64_t cluster_reduce_blocks = 0;
  // A persistent loop's: the groups of the block's warps that take turns on its iterations (ping-pong).
  int pingpong = 1;
  // The outermost kGrid loop's: its iterations are the thread blocks of one cluster, which run side by side
  // and send each other the tiles that all of them want.
  bool multicast_cluster = false;
};

}  // namespace mycc
