// Calls a candidate's kernel with arguments in device memory. Thread rule: the device's thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/runtime/library.h"
#include "codegen/workload/workload.h"
#include "worker/gpu_context.h"

namespace mycc {

class GpuCall {
 public:
  // The library's only function, which must have the workload's arguments; const inputs are packed.
  // `arguments`: the addresses of the inputs, then of the outputs, in declared order.
  static absl::StatusOr<std::unique_ptr<GpuCall>> Load(GpuContext* device, const std::string& library,
                                                       const Workload& workload,
                                                       const std::vector<CuAddress>& arguments);

  // Packs the const inputs once more, after they have changed.
  absl::Status Pack();
  // Puts the kernel on the device's stream, also within a capture.
  absl::Status Enqueue();

 private:
  GpuCall(GpuContext* device, std::unique_ptr<Library> library)
      : device_(device), library_(std::move(library)) {}

  GpuContext* const device_;
  std::unique_ptr<Library> library_;
  std::vector<CudaBuffer> packed_;
  std::vector<std::unique_ptr<std::vector<int64_t>>> packed_shapes_;
  std::vector<std::unique_ptr<DLTensor>> tensors_;
  std::vector<DLTensor*> call_args_, pack_args_;
};

}  // namespace mycc
