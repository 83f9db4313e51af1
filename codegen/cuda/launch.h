// Analyses one launch of a lowered function: its grid, its threads, and the memory of its buffers. Thread
// rule: a value; it points into the function, which must outlive it.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/cuda/program.h"
#include "codegen/ir/threads.h"
#include "codegen/passes/lower.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/thread_registers.h"

namespace mycc {

// A buffer that a kernel gets a pointer to.
struct LaunchBuffer {
  Buffer buffer;
  CudaOperand operand;
  bool read_only;
};

struct Launch {
  std::vector<const For*> blocks;  // the grid loops, outermost first
  Stmt body;                       // the code inside them
  int64_t grid = 1;
  int64_t threads = 32;  // of a block: whole warps
  // Blocks of one cluster: the iterations of the outermost grid loop (multicast), or the blocks that execute
  // each grid iteration together.
  int64_t cluster = 1;
  int64_t cluster_reduce = 1;     // blocks that execute each iteration together
  int64_t min_blocks_per_sm = 0;  // blocks that must fit on an SM at the same time; 0: no limit
  std::vector<LaunchBuffer> buffers;
  bool after_launch = false;                        // may overlap with the launch before it
  bool before_launch = false;                       // may overlap with the launch after it
  std::unordered_set<const BufferNode*> read_once;  // tensors in global memory with each element read once
  SharedPlan shared;
  Distributions registers;  // of buffers allocated outside of thread loops
  std::unordered_set<const StmtNode*> barriers_before;
};

// The launches of a body, in order: each statement at its root is one. `buffers` are all buffers from outside
// the body; a launch keeps those that it uses. `overlap`: the device can begin a launch while the one before
// it ends. Errors: FailedPrecondition for a nest that does not fit a GPU's grid and blocks.
absl::StatusOr<std::vector<Launch>> LaunchesOf(const Stmt& body, const std::vector<LaunchBuffer>& buffers,
                                               bool overlap);

// The function with a Barrier statement wherever emitted code has a barrier, for the interpreter
// (Barriers::kExplicit). Errors: those of LaunchesOf.
absl::StatusOr<LoweredFunction> WithBarriers(const LoweredFunction& lowered);

// Shared memory after the planned buffers. Scratch is for combining across warps; 0 bytes when no reduction
// spans warps. Received has kReceiveBuffers buffers for the partial results that the blocks of a reducing
// cluster send each other.
int64_t ScratchBytes(const Launch& launch);
int64_t ScratchOffset(const Launch& launch);
int64_t ReceivedBytes(const Launch& launch);
int64_t ReceivedOffset(const Launch& launch);
inline constexpr int64_t kReceiveBuffers = 2;

}  // namespace mycc
