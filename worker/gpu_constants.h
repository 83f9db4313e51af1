// The micro-benchmarks of a GPU's constants (proto/device_constants.h): multiply-adds, reading from L2 and
// from memory, the latency of a load, and one launch more in a graph. The shortest of some runs counts.
// Thread rule: the device's thread, in a runner's process; a few tens of milliseconds.
#pragma once

#include "absl/status/statusor.h"
#include "proto/records.pb.h"
#include "worker/gpu_context.h"

namespace mycc {

absl::StatusOr<v1::DeviceConstants> MeasureGpuConstants(GpuContext* device);

}  // namespace mycc
