// The strain on a GPU's kernel while it is proven: beside it, on another stream, run blocks that take
// multiprocessors, or a share of each, from it for a part of its time, and write over the L2. So its blocks
// begin at other moments, in another number at once, and wait for memory at other places. Thread rule: the
// device's thread.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "worker/gpu_context.h"

namespace mycc {

class GpuNeighbour {
 public:
  // Writes over `memory`, whose contents nobody needs.
  GpuNeighbour(GpuContext* device, const CudaBuffer& memory) : device_(device), memory_(memory) {}

  // Begins what disturbs launch `i` of a kernel that takes about `seconds` alone. Does not wait.
  absl::Status Disturb(int i, double seconds);
  // Waits until all of it is over.
  absl::Status Wait() { return device_->WaitBeside(); }

 private:
  GpuContext* const device_;
  const CudaBuffer& memory_;
};

}  // namespace mycc
