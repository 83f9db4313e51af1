// A test case in device memory, which all candidates of a workload share: random inputs, drawn on the device,
// and expected outputs, from the reference kernel or at sampled places. It also compares outputs with them.
// Thread rule: the device's thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/workload/reference.h"
#include "codegen/workload/tolerance.h"
#include "codegen/workload/workload.h"
#include "proto/measure.pb.h"
#include "worker/gpu_context.h"

namespace mycc {

class GpuCase {
 public:
  // Internal when the reference kernel fails.
  static absl::StatusOr<std::unique_ptr<GpuCase>> Make(GpuContext* device, const Workload& workload,
                                                       const v1::GpuCase& description);

  const Workload& workload() const { return workload_; }
  // The addresses of the inputs, then those of the outputs.
  std::vector<CuAddress> Arguments() const;
  int64_t bytes() const { return bytes_; }

  // Draws the inputs again, after other data have taken their place.
  absl::Status DrawInputs();
  // Fills the outputs with values that no kernel computes: NaNs, and bytes of 0xaa.
  absl::Status PoisonOutputs();
  // Compares all outputs, and looks at what must not have changed: inputs, and what lies beside any tensor.
  // DataLoss names the first mismatch.
  absl::Status Verify(v1::Verification* verification);

  // Restores inputs and guard bands that a kernel may have overwritten. False when it has overwritten the
  // expected values, which cannot be restored.
  absl::StatusOr<bool> Restore();

  absl::StatusOr<std::vector<NDArray>> DownloadInputs();
  absl::StatusOr<std::vector<uint8_t>> DownloadOutput(int output);

 private:
  // A tensor between two guard bands, which detect writes beside it.
  struct Tensor {
    Buffer buffer;
    CudaBuffer memory;
    CuAddress address = 0;
  };
  struct Expected {
    CudaBuffer values, places, scale;
    std::vector<int64_t> host_places;  // empty: all elements, in order
    int64_t count = 0;
  };
  struct Findings {
    uint64_t wrong = 0, first_wrong = ~uint64_t{0}, max_abs_error = 0, max_rel_error = 0;
  };

  GpuCase(GpuContext* device, const Workload& workload, uint64_t seed);
  absl::StatusOr<Tensor> MakeTensor(const Buffer& buffer);
  absl::Status ExpectReference(const std::string& library);
  absl::Status ExpectSampled(const v1::GpuCase& description);
  absl::Status MeasureScales();
  // A digest of everything that is expected.
  absl::StatusOr<uint64_t> Digest();
  absl::StatusOr<std::vector<Findings>> Check();
  absl::StatusOr<std::string> Mismatch(int output, const Findings& findings);

  GpuContext* const device_;
  const Workload workload_;
  const uint64_t seed_;
  const Tolerance tolerance_;
  const std::vector<InputDraw> draws_;
  std::vector<Tensor> inputs_, outputs_;
  std::vector<Expected> expected_;
  CudaBuffer findings_;
  int64_t bytes_ = 0;
  uint64_t digest_ = 0;
};

}  // namespace mycc
