// Lists this host's GPUs, each with its target and a description for records. Thread rule: functions are
// re-entrant.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "codegen/target/target.h"
#include "proto/records.pb.h"

namespace mycc {

struct Gpu {
  std::string uuid;  // "GPU-..."
  Target target;
  v1::DeviceInfo info;  // everything but the worker's name, as it is now
};

// The number of a device's name, "cuda:0" or plain "cuda"; InvalidArgument for another text.
absl::StatusOr<int> ParseGpuName(const std::string& name);

// NotFound: there is no driver, or no GPU of that number.
absl::StatusOr<Gpu> DescribeGpu(int ordinal);

// The compilers of GPU code: this program's and NVRTC. NotFound says where NVRTC was looked for.
absl::StatusOr<v1::Toolchain> GpuToolchain();

}  // namespace mycc
