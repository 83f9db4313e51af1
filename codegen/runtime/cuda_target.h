// Describes a GPU of this machine as a target. Thread rule: functions are re-entrant.
#pragma once

#include "absl/status/statusor.h"
#include "codegen/runtime/cuda_device.h"
#include "codegen/target/target.h"

namespace mycc {

// The target of a device. Its architecture includes architecture-specific instructions where there are such
// (sm_90a).
Target CudaTargetOf(const CudaDeviceInfo& device);

// Errors: NotFound when there is no driver or no such device.
absl::StatusOr<Target> DetectCudaTarget(int ordinal);

}  // namespace mycc
