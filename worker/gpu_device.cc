#include "worker/gpu_device.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/runtime/cuda_device.h"
#include "codegen/runtime/cuda_target.h"
#include "worker/device.h"
#include "worker/nvml.h"

namespace mycc {

absl::StatusOr<int> ParseGpuName(const std::string& name) {
  absl::string_view rest = name;
  int ordinal = 0;
  if (absl::ConsumePrefix(&rest, "cuda") && rest.empty()) return ordinal;
  if (absl::ConsumePrefix(&rest, ":") && absl::SimpleAtoi(rest, &ordinal) && ordinal >= 0) return ordinal;
  return absl::InvalidArgumentError(
      absl::StrCat("no device ", name, "; expected cpu, or a GPU such as cuda:0"));
}

absl::StatusOr<Gpu> DescribeGpu(int ordinal) {
  MYCC_ASSIGN_OR_RETURN(const CudaDeviceInfo device, DescribeCudaDevice(ordinal));
  Gpu gpu;
  gpu.uuid = device.uuid;
  gpu.target = CudaTargetOf(device);
  const GpuHealth health(gpu.uuid);
  gpu.info = DescribeHost();
  gpu.info.set_device(absl::StrCat("cuda:", ordinal));
  gpu.info.set_model(device.name);
  const int driver = device.driver_version;
  const std::string cuda = absl::StrCat("CUDA ", driver / 1000, ".", driver % 1000 / 10);
  gpu.info.set_driver(health.driver().empty() ? cuda : absl::StrCat(health.driver(), ", ", cuda));
  health.Describe(&gpu.info);
  return gpu;
}

absl::StatusOr<v1::Toolchain> GpuToolchain() {
  v1::Toolchain toolchain = CpuToolchain();
  MYCC_ASSIGN_OR_RETURN(*toolchain.mutable_nvrtc(), CudaToolchain());
  return toolchain;
}

}  // namespace mycc
