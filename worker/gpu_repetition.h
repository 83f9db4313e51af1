// Checks that a kernel leaves the same bits in device memory at every launch, like Repetition (repetition.h).
// The first launch's outputs are kept and compared on the device. One object serves a test case. Thread rule:
// the device's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/gpu_call.h"
#include "worker/gpu_case.h"
#include "worker/gpu_context.h"

namespace mycc {

class GpuRepetition {
 public:
  static constexpr int kMostLaunches = 64;  // between two calls of Check

  // `test` must outlive it.
  static absl::StatusOr<std::unique_ptr<GpuRepetition>> Make(GpuContext* device, GpuCase* test);

  // The outputs now hold the first launch's results.
  absl::Status Begin();
  // Puts one more launch on the stream: poisons the outputs, calls, compares. Does not wait.
  absl::Status Launch(GpuCall* call);
  // Waits for the launches since Begin, or DeadlineExceeded; SameBits's error for the first that differs.
  absl::Status Check(double limit_seconds);

  uint32_t launches() const { return launches_; }
  int64_t bytes() const { return bytes_; }

 private:
  struct Output {
    Buffer tensor;
    CuAddress address = 0;
    CudaBuffer first;
  };
  struct Findings {  // as the measuring kernels have it
    uint64_t wrong = 0, first_wrong = ~uint64_t{0}, max_abs_error = 0, max_rel_error = 0;
  };

  GpuRepetition(GpuContext* device, GpuCase* test) : device_(device), test_(test) {}

  GpuContext* const device_;
  GpuCase* const test_;
  std::vector<Output> outputs_;
  CudaBuffer findings_;  // of each launch, of each output
  int64_t bytes_ = 0;
  uint32_t launches_ = 0;  // the first, and those on the stream
};

}  // namespace mycc
