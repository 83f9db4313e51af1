// Lists the GPUs that this process may use, with their properties. Thread rule: functions are re-entrant.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "codegen/runtime/cuda_driver.h"

namespace mycc {

struct CudaDeviceInfo {
  int ordinal = 0;
  std::string name;  // "NVIDIA H200"
  std::string uuid;  // "GPU-6d1f..."
  int major = 0, minor = 0;
  int sms = 0;
  int64_t shared_bytes = 0;  // the most that a block may ask for
  int64_t l2_bytes = 0;
  int64_t memory_bytes = 0;
  std::string pci_bus_id;  // "0000:1b:00.0"
  int driver_version = 0;  // the newest CUDA that the driver supports: 13000 for 13.0
};

// Errors: NotFound when there is no driver or no such device; the message says which, and where it was looked
// for.
absl::StatusOr<int> CountCudaDevices();
absl::StatusOr<CudaDeviceInfo> DescribeCudaDevice(int ordinal);

// The driver's handle of a device.
absl::StatusOr<CuDevice> CudaDeviceOf(const CudaDriver& driver, int ordinal);

}  // namespace mycc
