// Strains a GPU kernel while it is proven. Blocks on a second stream occupy multiprocessors for
// part of the kernel's time, and overwrite the L2. So the kernel's blocks start at other
// moments, fewer run at once, and their loads take other times. Thread rule: the device's
// thread.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "worker/gpu_context.h"

namespace mycc {

class GpuNeighbour {
 public:
  // Overwrites `memory`, whose contents must be worthless.
  GpuNeighbour(GpuContext* device, const CudaBuffer& memory) : device_(device), memory_(memory) {}

  // Starts the disturbance of launch `i` of a kernel that takes about `seconds` alone. Does not wait.
  absl::Status Disturb(int i, double seconds);
  // Waits until all of it is over.
  absl::Status Wait() { return device_->WaitBeside(); }

 private:
  GpuContext* const device_;
  const CudaBuffer& memory_;
};

}  // namespace mycc
