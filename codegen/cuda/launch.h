// The source of one kernel: a launch of lowered code, its grid loops, and the places of its tensors. Thread
// rule: a value; it points into the function, which must outlive it.
#pragma once

#include <vector>

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
  std::vector<const For*> blocks;     // the grid loops, outermost first
  Stmt body;                          // the code inside them
  std::vector<LaunchBuffer> buffers;  // that it uses
  Distributions registers;            // of buffers allocated outside of thread loops
};

}  // namespace mycc
