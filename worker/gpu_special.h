// Verifies a kernel on inputs with special values, in device memory. The special inputs are drawn in place of
// the case's ordinary ones, which are drawn again afterwards, so that no tensor is stored twice. One object
// serves a test case. Thread rule: the device's thread.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/workload/permitted.h"
#include "proto/measure.pb.h"
#include "worker/gpu_case.h"
#include "worker/gpu_context.h"

namespace mycc {

class GpuSpecial {
 public:
  // `test` must outlive it.
  static absl::StatusOr<std::unique_ptr<GpuSpecial>> Make(GpuContext* device, GpuCase* test,
                                                          const v1::GpuCase& description);

  // Puts special values among the inputs; GpuCase::DrawInputs undoes it.
  absl::Status Draw();
  // DataLoss names the first element of an output that is not permitted.
  absl::Status Check();

  int64_t bytes() const { return bytes_; }

 private:
  // The checked places of an output, and the kernel's values there.
  struct Looked {
    PermittedValues permitted;
    CudaBuffer places, elements;
  };

  GpuSpecial(GpuContext* device, GpuCase* test, uint64_t seed);
  absl::StatusOr<CudaBuffer> Keep(const void* from, size_t bytes);

  GpuContext* const device_;
  GpuCase* const test_;
  const std::vector<SpecialDraw> draws_;
  std::vector<CudaBuffer> values_;  // of each draw
  std::vector<Looked> looked_;      // of each output
  int64_t bytes_ = 0;
};

}  // namespace mycc
