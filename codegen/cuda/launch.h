// The source of one kernel: a launch of lowered code, its grid loops, and the places of its tensors. Thread
// rule: a value; it points into the function, which must outlive it.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/cuda/program.h"
#include "codegen/ir/stmt.h"
#include "codegen/passes/thread_registers.h"

namespace mycc {

// A buffer that a kernel gets a pointer to.
struct LaunchBuffer {
  Buffer buffer;
  CudaOperand operand;
  bool read_only;
};

struct CudaLaunch : LaunchShape {
  std::vector<const For*> blocks;  // the grid loops, outermost first
  Stmt body;                       // the code inside them
  std::vector<LaunchBuffer> buffers;
  Distributions registers;  // of buffers allocated outside of thread loops
};

// The launches of a lowered body, in order. `buffers` are all buffers from outside the body; a launch keeps
// those that it uses. REQUIRES: the body is a sequence of Launch statements, as Lower makes them.
absl::StatusOr<std::vector<CudaLaunch>> CudaLaunchesOf(const Stmt& body,
                                                       const std::vector<LaunchBuffer>& buffers);

}  // namespace mycc
