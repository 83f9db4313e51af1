// The kinds of loops in the IR, and the marks that primitives leave on them for lowering. Thread rule:
// values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mycc {

// How a loop's iterations are executed. Results are the same for all kinds; iterations of kParallel, kGrid
// and kThread loops must be independent (the interpreter runs them in any order).
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

// How the warps of a block divide the tile of a tensor-core statement: along its rows and its columns. For a
// warpgroup instruction these are warpgroups.
struct WarpGrid {
  int rows = 1, columns = 1;

  bool operator==(const WarpGrid&) const = default;
};

// Stream-K: persistent blocks share the iterations that do not divide evenly among them, by steps of the
// pipelined loop inside, in `groups` groups of `members` blocks. 0 groups: each block has whole iterations
// only.
struct StreamKGroups {
  int64_t groups = 0, members = 0;

  bool operator==(const StreamKGroups&) const = default;
};

// A CPU's code for a loop whose iterations are lanes, or for an unrolled loop around one.
enum class LaneForm : uint8_t {
  kPlain,        // vectors of a vector loop's iterations; other loops as their kind says
  kOneByOne,     // a vector loop's iterations, because they access each other's elements
  kReduces,      // vectors of partial results of a vector loop that reduces into one element
  kInterleaves,  // vectors of stored elements, which are contiguous along the unrolled loop around the lanes
  kTurns,        // tiles of elements, loaded along the unrolled loop around the lanes and transposed
  kTurnsGroups,  // the same for groups of adjacent elements
};

// Marks that primitives set and lowering carries out.
struct LoopMarks {
  // Non-empty when lowering turns this loop and those inside it into one tile statement of that hardware
  // instruction (see target/instructions.h); set by the tensorize primitive.
  std::string instruction;
  WarpGrid warps;  // of that instruction, on tensor cores
  // On a CPU: how many iterations of this loop ahead the two operands are prefetched; 0: not at all.
  int64_t rows_ahead = 0, lanes_ahead = 0;
  bool fetches_sums = false;  // see Mma
  // On a CPU: stores of whole vectors to the function's outputs under this loop bypass the caches.
  bool nontemporal = false;
  // On a CPU: this loop's reads of inputs are prefetched for the next iteration of the enclosing loop.
  bool fetches_next = false;
  LoopPipeline pipeline;
  // For a kGrid loop: the number of thread blocks that share its iterations; 0: one block for each.
  int64_t persistent_blocks = 0;
  StreamKGroups stream_k;  // for a loop with persistent blocks
  // For a kGrid loop: the number of thread blocks that must fit on an SM at the same time, which limits their
  // registers; 0: no limit.
  int64_t min_blocks_per_sm = 0;
  // For a kGrid loop: the number of thread blocks (a cluster) that execute each iteration together. The
  // thread loops inside number the threads of all these blocks. The blocks combine reductions, but share no
  // other data. 0: one block for each iteration.
  int64_t cluster_reduce_blocks = 0;
  // For a persistent loop: the number of groups of the block's warps that take its iterations in turn
  // (ping-pong).
  int pingpong = 1;
  // For the outermost kGrid loop: its iterations are the thread blocks of one cluster. They run at the same
  // time, and each tile that all of them read is loaded once and multicast.
  bool multicast_cluster = false;
  // For a serial loop in a GPU's kernel: the number of iterations that the device's compiler unrolls; 0: its
  // own choice. Set by a pass (passes/overlap_products.cc). For a vector loop on a CPU: the number of vectors
  // in each step of a loop; 0: straight-line code.
  int unroll_by = 0;
  // Set by a pass (passes/lane_forms.cc), on CPUs: the form, and the lanes of a whole vector.
  LaneForm form = LaneForm::kPlain;
  int lanes = 0;

  bool operator==(const LoopMarks&) const = default;
};

}  // namespace mycc
