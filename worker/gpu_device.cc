#include "worker/gpu_device.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "codegen/cuda/nvrtc.h"
#include "worker/cuda_api.h"
#include "worker/device.h"
#include "worker/nvml.h"

namespace mycc {
namespace {

// Attributes of a device.
constexpr int kMultiprocessors = 16, kL2Bytes = 38, kMajor = 75, kMinor = 76, kSharedBytes = 97;
constexpr int kFirstWithOwnInstructions = 9;  // major version: code for "sm_90a" and not for "sm_90"

std::string UuidText(const unsigned char (&bytes)[16]) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    absl::StrAppendFormat(&text, "%02x", bytes[i]);
  }
  return text;
}

}  // namespace

absl::StatusOr<int> ParseGpuName(const std::string& name) {
  absl::string_view rest = name;
  int ordinal = 0;
  if (absl::ConsumePrefix(&rest, "cuda") && rest.empty()) return ordinal;
  if (absl::ConsumePrefix(&rest, ":") && absl::SimpleAtoi(rest, &ordinal) && ordinal >= 0) return ordinal;
  return absl::InvalidArgumentError(
      absl::StrCat("no device ", name, "; expected cpu, or a GPU such as cuda:0"));
}

absl::StatusOr<Gpu> DescribeGpu(int ordinal) {
  MYCC_ASSIGN_OR_RETURN(const CudaApi* const api, CudaApi::Open());
  const auto check = [api](const char* function, CudaResult result) {
    return api->StatusOf(function, result);
  };
  int count = 0, device = 0, driver = 0, major = 0, minor = 0, sms = 0, l2_bytes = 0, shared_bytes = 0;
  MYCC_RETURN_IF_ERROR(check("cuDeviceGetCount", api->DeviceGetCount(&count)));
  if (ordinal >= count) {
    return absl::NotFoundError(
        absl::StrCat("no device cuda:", ordinal, ": this host has ", count, " GPUs, numbered from 0"));
  }
  char name[256] = "";
  unsigned char uuid[16] = {};
  MYCC_RETURN_IF_ERROR(check("cuDeviceGet", api->DeviceGet(&device, ordinal)));
  MYCC_RETURN_IF_ERROR(check("cuDeviceGetName", api->DeviceGetName(name, sizeof(name), device)));
  MYCC_RETURN_IF_ERROR(check("cuDeviceGetUuid", api->DeviceGetUuid(&uuid, device)));
  MYCC_RETURN_IF_ERROR(check("cuDriverGetVersion", api->DriverGetVersion(&driver)));
  for (const auto& [attribute, value] : {std::pair{kMajor, &major},
                                         {kMinor, &minor},
                                         {kMultiprocessors, &sms},
                                         {kL2Bytes, &l2_bytes},
                                         {kSharedBytes, &shared_bytes}}) {
    MYCC_RETURN_IF_ERROR(check("cuDeviceGetAttribute", api->DeviceGetAttribute(value, attribute, device)));
  }
  Gpu gpu;
  gpu.uuid = UuidText(uuid);
  gpu.target.kind = TargetKind::kCuda;
  gpu.target.arch = absl::StrCat("sm_", major, minor, major >= kFirstWithOwnInstructions ? "a" : "");
  gpu.target.model = name;
  gpu.target.sms = sms;
  gpu.target.smem_bytes = shared_bytes;
  gpu.target.l2_bytes = l2_bytes;

  const GpuHealth health(gpu.uuid);
  gpu.info = DescribeHost();
  gpu.info.set_device(absl::StrCat("cuda:", ordinal));
  gpu.info.set_model(name);
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
