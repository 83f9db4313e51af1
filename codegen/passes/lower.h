// Lowers scheduled IR to a kernel that a back end can emit. lower.cc lists the passes; each has its own file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/function.h"
#include "codegen/target/target.h"

namespace mycc {

// Bytes at the start of every packed buffer: the digest of the packing code and the layout, so that a buffer
// of another build is refused.
inline constexpr int64_t kPackedHeaderBytes = 64;

// A buffer that FUNC_pack fills and FUNC reads: `offset` bytes (64-byte aligned, header included) into the u8
// buffer of const parameter `param`.
struct PackedBuffer {
  Buffer buffer;
  int param;
  int64_t offset;
};

// An intermediate in memory: `offset` bytes into the call's shared workspace, or into the running thread's
// part of it.
struct WorkspaceBuffer {
  Buffer buffer;
  bool per_thread;
  int64_t offset;
};

// A function ready for emission. Bodies hold no Blocks. Buffers used in `kernel` are its non-const
// parameters, packed buffers, workspace buffers, and buffers of Alloc statements (small, on the stack or in
// registers).
struct LoweredFunction {
  Function kernel;  // params as declared; const ones are reached through `packed` alone
  Function pack;    // body fills the packed buffers from the const params; an empty Seq without any
  std::vector<PackedBuffer> packed;
  // For each parameter: the size of its u8 buffer, 0 for parameters that are not const.
  std::vector<int64_t> packed_bytes;
  std::vector<WorkspaceBuffer> workspace;
  int64_t workspace_shared_bytes = 0;
  int64_t workspace_thread_bytes = 0;  // for each thread of the team
  bool parallel = false;               // has a parallel loop
};

// Runs the passes, verifying between them. Blocks that depend on const inputs alone and stand at the root
// move to `pack`; a const input that is read unpacked is copied as it is. Errors: FailedPrecondition when the
// schedule cannot be lowered for the target (say why). Debug output (MYCC_DEBUG >= 5, MYCC_PRINT_AFTER,
// MYCC_TIME_PASSES) only prints.
absl::StatusOr<LoweredFunction> Lower(const Function& scheduled, const Target& target);

// The passes in the order in which they run.
std::vector<std::string> PassNames();

std::string PrintLowered(const LoweredFunction& lowered);

// The identity of generated code: SHA-256 over PrintLowered, the target's text and the back end's version.
std::string CodeDigest(const LoweredFunction& lowered, const Target& target, const std::string& toolchain);

}  // namespace mycc
