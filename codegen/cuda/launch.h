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
  std::vector<const For*> blocks;  // the loops of the grid, outermost first
  Stmt body;                       // inside them
  int64_t grid = 1;
  int64_t threads = 32;  // of a block: whole warps
  // Blocks of one cluster: the iterations of the outermost loop of the grid, or those that carry out each
  // iteration of its loops together.
  int64_t cluster = 1;
  int64_t cluster_reduce = 1;     // blocks that carry out each iteration together
  int64_t min_blocks_per_sm = 0;  // blocks that are to share an SM; 0: as many as fit
  std::vector<LaunchBuffer> buffers;
  bool after_launch = false;   // another comes before it, on a device whose launches overlap
  bool before_launch = false;  // another comes after it, likewise
  std::unordered_set<const BufferNode*> read_once;  // tensors from outside whose elements are each read once
  SharedPlan shared;
  Distributions registers;  // of what stands outside of thread loops
  std::unordered_set<const StmtNode*> barriers_before;
};

// The launches of a body, in order: each statement at its root is one. `buffers` are all that come from
// outside the body; a launch keeps those that it uses. On devices with `overlap` a launch begins while the
// one before it ends. Errors: FailedPrecondition for a nest that a GPU's grid and blocks cannot carry out.
absl::StatusOr<std::vector<Launch>> LaunchesOf(const Stmt& body, const std::vector<LaunchBuffer>& buffers,
                                               bool overlap);

// The function with a Barrier before each statement that emitted code has its threads wait before, to be
// interpreted so (Barriers::kExplicit). Errors as of LaunchesOf.
absl::StatusOr<LoweredFunction> WithBarriers(const LoweredFunction& lowered);

// Shared memory behind the planned buffers: for combining across warps, 0 bytes where warps are enough; then
// for the partial results of two rounds, which the blocks of a cluster that reduces together send each other.
int64_t ScratchBytes(const Launch& launch);
int64_t ScratchOffset(const Launch& launch);
int64_t ReceivedBytes(const Launch& launch);
int64_t ReceivedOffset(const Launch& launch);
inline constexpr int64_t kRounds = 2;

}  // namespace mycc
