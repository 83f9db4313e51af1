#include "worker/device_reading.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mycc {
namespace {

namespace fs = std::filesystem;

constexpr int kMostCpus = 64;  // whose clocks are read

std::string FirstLine(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// -1 where there is no number.
int64_t NumberIn(const fs::path& path) {
  std::ifstream file(path);
  int64_t number = -1;
  return file >> number ? number : -1;
}

// Calls `look` with each entry of a folder; none where there is no folder.
template <typename Look>
void ForEntries(const fs::path& folder, const Look& look) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    look(entry->path());
}

// The hottest sensor of the drivers that read a CPU; 0 where there is none.
double Celsius(const fs::path& sys) {
  int64_t hottest = 0;
  ForEntries(sys / "class/hwmon", [&hottest](const fs::path& monitor) {
    const std::string name = FirstLine(monitor / "name");
    if (name != "coretemp" && name != "k10temp" && name != "zenpower" && name != "cpu_thermal") return;
    ForEntries(monitor, [&hottest](const fs::path& file) {
      const std::string sensor = file.filename();
      if (absl::StartsWith(sensor, "temp") && absl::EndsWith(sensor, "_input"))
        hottest = std::max(hottest, NumberIn(file));
    });
  });
  if (hottest == 0) {
    ForEntries(sys / "class/thermal", [&hottest](const fs::path& zone) {
      if (FirstLine(zone / "type") == "x86_pkg_temp") hottest = std::max(hottest, NumberIn(zone / "temp"));
    });
  }
  return static_cast<double>(hottest) / 1000;
}

// The mean of the CPUs' clocks; 0 where unknown.
uint32_t ClockMhz(const fs::path& sys) {
  int64_t khz = 0, cpus = 0;
  for (int cpu = 0; cpu < kMostCpus; ++cpu) {
    const int64_t clock =
        NumberIn(sys / absl::StrCat("devices/system/cpu/cpu", cpu) / "cpufreq/scaling_cur_freq");
    if (clock <= 0) continue;
    khz += clock;
    ++cpus;
  }
  return cpus == 0 ? 0 : static_cast<uint32_t>(khz / cpus / 1000);
}

}  // namespace

v1::DeviceReading CpuReader::Read() {
  v1::DeviceReading reading;
  reading.set_device("cpu");
  reading.set_temperature_celsius(Celsius(sys_));
  reading.set_clock_mhz(ClockMhz(sys_));
  const int64_t throttled =
      NumberIn(fs::path(sys_) / "devices/system/cpu/cpu0/thermal_throttle/package_throttle_count");
  if (throttled_ >= 0 && throttled > throttled_) reading.set_throttle("heat");
  throttled_ = throttled;
  return reading;
}

v1::DeviceReading GpuReader::Read() const {
  v1::DeviceInfo info;
  health_.Describe(&info);
  v1::DeviceReading reading;
  reading.set_device(device_);
  reading.set_temperature_celsius(info.temperature_celsius());
  reading.set_power_watts(info.power_watts());
  reading.set_clock_mhz(static_cast<uint32_t>(info.clock_mhz()));
  reading.set_throttle(absl::StrJoin(info.throttled_by(), ", "));
  return reading;
}

}  // namespace mycc
