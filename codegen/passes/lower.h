// Lowers scheduled IR to a kernel that a back end can emit. lower.cc lists the passes, and the reasons for
// their order; each has its own file. For a CPU they are, in order:
//
//   nests       lower_blocks, unfuse_loops, partition_loops: guards become main parts and tails; simplify
//   registers   fit_locals, tensorize: products by vectors or tiles
//   the rest    hoist_conditions, split_reductions
//   lanes       choose_lane_forms: vectors, partial results, turned tiles, or one iteration at a time
//   accesses    place_locals: what no one reads of a buffer, and what may be rounded in one instruction;
//               place_tiles: sums in tile registers, what begins and ends them, and configurations;
//               place_fetches, place_bypasses: what is prefetched, which stores bypass the caches
//
// For a GPU:
//
//   nests       bind_nests, lower_blocks, unfuse_loops, simplify
//   threads     split_thread_reductions, tensorize_tiles
//   pipelines   pipeline_loops: rings of tiles, roles that copy and compute, and their barriers
//   registers   fragment_loops, split_whole_vectors, split_conversions, defer_sums: loops over each thread's
//               own elements
//   overlap     rotate_products, unmask_tiles, fetch_ahead, overlap_products: what runs beside products
//   the rest    fit_locals, hoist_conditions, join_launches
//   launches    launches, place_roles, place_combines, place_shared, place_barriers, after buffers have moved
//               to the workspace: threads, their registers and memory, and how they synchronize
//   accesses    divide_copies, place_vectors: how many elements a thread moves at a time; place_registers:
//               loops that are unrolled so that arrays are in registers, and the precision of these
//
// Thread rule: functions are re-entrant.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/function.h"
#include "codegen/target/target.h"

namespace mycc {

// Bytes of the header at the start of every packed buffer: a digest of the packing code and the layout. A
// buffer from another build is refused by it.
inline constexpr int64_t kPackedHeaderBytes = 64;

// A buffer that FUNC_pack fills and FUNC reads. It lies `offset` bytes (64-byte aligned, header included)
// into the u8 buffer of const parameter `param`.
struct PackedBuffer {
  Buffer buffer;
  int param;
  int64_t offset;
};

// An intermediate in memory. It lies `offset` bytes into the call's shared workspace, or (`per_thread`) into
// the running thread's workspace.
struct WorkspaceBuffer {
  Buffer buffer;
  bool per_thread;
  int64_t offset;
};

// A function ready for emission. Bodies hold no Blocks. Buffers used in `kernel` are its non-const
// parameters, packed buffers, workspace buffers, and buffers of Alloc statements (small, on the stack or in
// registers).
struct LoweredFunction {
  Function kernel;  // params as declared; const ones are read only through `packed`
  Function pack;    // fills the packed buffers from the const params; its body is an empty Seq without any
  std::vector<PackedBuffer> packed;
  // For each parameter: the bytes of its packed u8 buffer; 0 for parameters that are not const.
  std::vector<int64_t> packed_bytes;
  std::vector<WorkspaceBuffer> workspace;
  int64_t workspace_shared_bytes = 0;
  int64_t workspace_thread_bytes = 0;  // for each thread of the team
  bool parallel = false;               // the kernel has a parallel loop
};

// A buffer that lies `offset` bytes into an argument of a body.
struct ArgumentBuffer {
  Buffer buffer;
  int argument;
  int64_t offset;
  bool read_only;
  bool packed;
};
// The kernel's arguments are its parameters, with packed buffers instead of const ones. Those of `pack` are
// the const parameters, then their packed buffers in the same order.
std::vector<ArgumentBuffer> ArgumentsOfKernel(const LoweredFunction& lowered);
std::vector<ArgumentBuffer> ArgumentsOfPack(const LoweredFunction& lowered);

// Runs the passes, and verifies the IR after each. Blocks at the root that depend only on const inputs move
// to `pack`; a const input that is read unpacked is copied unchanged. Errors: FailedPrecondition with the
// reason when the schedule cannot be lowered for the target. Debug output (MYCC_DEBUG >= 5, MYCC_PRINT_AFTER,
// MYCC_TIME_PASSES) only prints.
absl::StatusOr<LoweredFunction> Lower(const Function& scheduled, const Target& target);

// The passes in the order in which they run.
std::vector<std::string> PassNames();

std::string PrintLowered(const LoweredFunction& lowered);

// The identity of generated code: SHA-256 over PrintLowered, the target's text and the back end's version.
std::string CodeDigest(const LoweredFunction& lowered, const Target& target, const std::string& toolchain);

}  // namespace mycc
