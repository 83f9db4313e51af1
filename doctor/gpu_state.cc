#include "doctor/gpu_state.h"

#include <string>

#include "base/status.h"
#include "codegen/runtime/cuda_device.h"
#include "worker/nvml.h"

namespace mycc {
namespace {

// Calls a function of NVML on the device; false where NVML lacks it, or the device does not know the answer.
template <typename... Parameters, typename... Arguments>
bool Ask(const char* name, void* device, Arguments... arguments) {
  auto* const function = reinterpret_cast<int (*)(void*, Parameters...)>(NvmlFunction(name));
  return function != nullptr && function(device, arguments...) == 0;
}

constexpr unsigned kSm = 1;                          // NVML_CLOCK_SM
constexpr unsigned kUncorrected = 1, kVolatile = 0;  // NVML_MEMORY_ERROR_TYPE_, NVML_..._ECC
constexpr unsigned kProhibited = 2, kExclusive = 3;  // NVML_COMPUTEMODE_

void ReadSettings(void* device, GpuState* state) {
  unsigned value = 0, most = 0;
  if (Ask<unsigned*>("nvmlDeviceGetPersistenceMode", device, &value)) state->is_persistent = value == 1;
  if (Ask<unsigned*>("nvmlDeviceGetComputeMode", device, &value))
    state->computes_for_one_alone = value == kProhibited || value == kExclusive;
  if (Ask<unsigned, unsigned*>("nvmlDeviceGetApplicationsClock", device, kSm, &value) &&
      Ask<unsigned, unsigned*>("nvmlDeviceGetMaxClockInfo", device, kSm, &most)) {
    state->sm_mhz = value;
    state->most_sm_mhz = most;
  }
}

void ReadErrors(void* device, GpuState* state) {
  unsigned long long errors = 0;
  if (Ask<unsigned, unsigned, unsigned long long*>("nvmlDeviceGetTotalEccErrors", device, kUncorrected,
                                                   kVolatile, &errors)) {
    state->uncorrected_errors = errors;
  }
  unsigned corrected = 0, uncorrected = 0, is_pending = 0, failed = 0;
  if (Ask<unsigned*, unsigned*, unsigned*, unsigned*>("nvmlDeviceGetRemappedRows", device, &corrected,
                                                      &uncorrected, &is_pending, &failed)) {
    state->has_pending_page = is_pending != 0 || failed != 0;
  }
}

}  // namespace

absl::StatusOr<GpuState> ReadGpuState(int ordinal) {
  MYCC_ASSIGN_OR_RETURN(const CudaDeviceInfo device, DescribeCudaDevice(ordinal));
  GpuState state;
  state.model = device.name;
  state.cuda = device.driver_version;
  state.pci_bus_id = device.pci_bus_id;
  const GpuHealth health(device.uuid);
  state.driver = health.driver();
  if (!health.known()) return state;
  v1::DeviceInfo info;
  health.Describe(&info);
  if (info.temperature_celsius() > 0) state.celsius = static_cast<uint32_t>(info.temperature_celsius());
  for (const std::string& reason : info.throttled_by()) {
    // A chosen clock slows nothing down that was not meant to be slow.
    if (reason != "application clocks") state.slowed_by.push_back(reason);
  }
  state.processes = static_cast<uint32_t>(info.processes());
  ReadSettings(health.device(), &state);
  ReadErrors(health.device(), &state);
  return state;
}

}  // namespace mycc
