#include "codegen/runtime/cuda_target.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace mycc {

Target CudaTargetOf(const CudaDeviceInfo& device) {
  Target target;
  target.kind = TargetKind::kCuda;
  // Since Hopper, the fast instructions are specific to one architecture.
  target.arch = absl::StrCat("sm_", device.major, device.minor, device.major >= 9 ? "a" : "");
  // The target's text has the model in quotes, so the name must not contain any.
  for (char c : device.name) target.model += c == '"' || static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  target.sms = device.sms;
  target.smem_bytes = device.shared_bytes;
  target.l2_bytes = device.l2_bytes;
  return target;
}

absl::StatusOr<Target> DetectCudaTarget(int ordinal) {
  MYCC_ASSIGN_OR_RETURN(const CudaDeviceInfo device, DescribeCudaDevice(ordinal));
  return CudaTargetOf(device);
}

}  // namespace mycc
