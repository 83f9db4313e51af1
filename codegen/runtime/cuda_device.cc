#include "codegen/runtime/cuda_device.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mycc {
namespace {

// The UUID in the format of NVIDIA's tools.
std::string UuidText(const unsigned char (&bytes)[16]) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    absl::StrAppendFormat(&text, "%02x", bytes[i]);
  }
  return text;
}

}  // namespace

absl::StatusOr<int> CountCudaDevices() {
  MYCC_ASSIGN_OR_RETURN(const CudaDriver* const driver, CudaDriver::Open());
  int count = 0;
  MYCC_CUDA(driver, DeviceGetCount, &count);
  return count;
}

absl::StatusOr<CuDevice> CudaDeviceOf(const CudaDriver& driver, int ordinal) {
  int count = 0;
  CuDevice device = 0;
  MYCC_CUDA(&driver, DeviceGetCount, &count);
  if (ordinal < 0 || ordinal >= count)
    return absl::NotFoundError(
        absl::StrCat("no CUDA device ", ordinal, "; this process has ", count, ", numbered from 0"));
  MYCC_CUDA(&driver, DeviceGet, &device, ordinal);
  return device;
}

absl::StatusOr<CudaDeviceInfo> DescribeCudaDevice(int ordinal) {
  MYCC_ASSIGN_OR_RETURN(const CudaDriver* const driver, CudaDriver::Open());
  MYCC_ASSIGN_OR_RETURN(const CuDevice device, CudaDeviceOf(*driver, ordinal));
  CudaDeviceInfo info;
  info.ordinal = ordinal;
  char text[256] = "";
  unsigned char uuid[16] = {};
  int shared_bytes = 0, l2_bytes = 0;
  size_t memory_bytes = 0;
  MYCC_CUDA(driver, DeviceGetName, text, sizeof text, device);
  info.name = text;
  MYCC_CUDA(driver, DeviceGetUuid, &uuid, device);
  info.uuid = UuidText(uuid);
  MYCC_CUDA(driver, DeviceGetAttribute, &info.major, kCudaDeviceMajor, device);
  MYCC_CUDA(driver, DeviceGetAttribute, &info.minor, kCudaDeviceMinor, device);
  MYCC_CUDA(driver, DeviceGetAttribute, &info.sms, kCudaDeviceMultiprocessors, device);
  MYCC_CUDA(driver, DeviceGetAttribute, &shared_bytes, kCudaDeviceMaxSharedBytes, device);
  MYCC_CUDA(driver, DeviceGetAttribute, &l2_bytes, kCudaDeviceL2Bytes, device);
  MYCC_CUDA(driver, DeviceTotalMem, &memory_bytes, device);
  MYCC_CUDA(driver, DeviceGetPCIBusId, text, sizeof text, device);
  MYCC_CUDA(driver, DriverGetVersion, &info.driver_version);
  info.shared_bytes = shared_bytes;
  info.l2_bytes = l2_bytes;
  info.memory_bytes = static_cast<int64_t>(memory_bytes);
  info.pci_bus_id = text;
  return info;
}

}  // namespace mycc
