#include "worker/nvml.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace mycc {
namespace {

struct ProcessInfo {  // nvmlProcessInfo_t
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};

struct Nvml {
  int (*Init)();
  int (*DriverVersion)(char*, unsigned bytes);
  int (*DeviceByUuid)(const char*, void** device);
  int (*Clock)(void* device, int type, unsigned* mhz);
  int (*Temperature)(void* device, int sensor, unsigned* celsius);
  int (*PowerUsage)(void* device, unsigned* milliwatts);
  int (*PowerLimit)(void* device, unsigned* milliwatts);
  int (*ThrottleReasons)(void* device, unsigned long long* reasons);
  int (*Processes)(void* device, unsigned* count, ProcessInfo* infos);
};

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

void* Library() {
  static void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  return library;
}

// Null where there is no NVML, or one that lacks something.
const Nvml* Open() {
  static const Nvml* const opened = []() -> const Nvml* {
    void* const library = Library();
    if (library == nullptr) return nullptr;
    static Nvml nvml;
    const bool complete = Find(library, "nvmlInit_v2", &nvml.Init) &&
                          Find(library, "nvmlSystemGetDriverVersion", &nvml.DriverVersion) &&
                          Find(library, "nvmlDeviceGetHandleByUUID", &nvml.DeviceByUuid) &&
                          Find(library, "nvmlDeviceGetClockInfo", &nvml.Clock) &&
                          Find(library, "nvmlDeviceGetTemperature", &nvml.Temperature) &&
                          Find(library, "nvmlDeviceGetPowerUsage", &nvml.PowerUsage) &&
                          Find(library, "nvmlDeviceGetEnforcedPowerLimit", &nvml.PowerLimit) &&
                          Find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &nvml.ThrottleReasons) &&
                          Find(library, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml.Processes);
    return complete && nvml.Init() == 0 ? &nvml : nullptr;
  }();
  return opened;
}

constexpr std::pair<uint64_t, const char*> kReasons[] = {
    {0x4, "power cap"},         {0x8, "hardware slowdown"}, {0x10, "sync boost"},
    {0x20, "software thermal"}, {0x40, "hardware thermal"}, {0x80, "hardware power brake"},
    {0x2, "application clocks"}};

}  // namespace

GpuHealth::GpuHealth(const std::string& uuid) {
  const Nvml* const nvml = Open();
  if (nvml == nullptr) return;
  char version[96] = "";
  if (nvml->DriverVersion(version, sizeof(version)) == 0) driver_ = version;
  if (nvml->DeviceByUuid(uuid.c_str(), &device_) != 0) device_ = nullptr;
}

void GpuHealth::Describe(v1::DeviceInfo* info) const {
  if (!known()) return;
  const Nvml& nvml = *Open();
  constexpr int kSmClock = 1, kMemoryClock = 2, kGpuSensor = 0;
  unsigned value = 0;
  if (nvml.Clock(device_, kSmClock, &value) == 0) info->set_clock_mhz(value);
  if (nvml.Clock(device_, kMemoryClock, &value) == 0) info->set_memory_clock_mhz(value);
  if (nvml.Temperature(device_, kGpuSensor, &value) == 0) info->set_temperature_celsius(value);
  if (nvml.PowerUsage(device_, &value) == 0) info->set_power_watts(value / 1000.0);
  if (nvml.PowerLimit(device_, &value) == 0) info->set_power_limit_watts(value / 1000.0);
  unsigned long long reasons = 0;
  info->clear_throttled_by();
  if (nvml.ThrottleReasons(device_, &reasons) == 0) {
    for (const auto& [bit, name] : kReasons) {
      if ((reasons & bit) != 0) info->add_throttled_by(name);
    }
  }
  std::vector<ProcessInfo> processes(64);
  unsigned count = static_cast<unsigned>(processes.size());
  if (nvml.Processes(device_, &count, processes.data()) == 0) info->set_processes(count);
}

void* NvmlFunction(const char* name) { return Open() != nullptr ? dlsym(Library(), name) : nullptr; }

}  // namespace mycc
