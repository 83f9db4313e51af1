// A host that is described by a test: files of /proc and /sys in a temporary folder, and answers in place of
// the system's. It is in good health until the test changes something.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "base/temporary_folder.h"
#include "doctor/installation.h"

namespace mycc {

class FakeHost {
 public:
  FakeHost() {
    installation.root = folder_.path();
    System& system = installation.system;
    system.usable_cpus = [] { return 4; };
    system.clock_is_kept = [] { return true; };
    system.missing_confinement = [] { return std::vector<std::string>(); };
    system.free_bytes = [](const std::string&) { return int64_t{100} << 30; };
    system.sync_seconds = [](const std::string&) { return std::vector<double>{0.001, 0.002, 0.004}; };
    system.bind = [](const std::string&, const std::string&) { return absl::OkStatus(); };
    system.unix_seconds = [] { return int64_t{1'800'000'000}; };
    system.count_gpus = [] { return 1; };
    system.gpu = [this](int) { return gpu; };
    system.gpu_compiler = [] { return "nvrtc-13.0"; };
    gpu.model = "NVIDIA H200";
    gpu.driver = "580.95.05";
    gpu.cuda = 13000;
    gpu.is_persistent = true;
    Write("/sys/devices/system/cpu/online", "0-3");
    Write("/proc/meminfo", "MemTotal:       65000000 kB\nMemAvailable:   64000000 kB");
    Write("/proc/self/cgroup", "0::/farm.slice/worker");
    Write("/proc/self/mountinfo", "1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw");
    Write("/proc/self/limits",
          "Limit                     Soft Limit           Hard Limit           Units\n"
          "Max processes             63000                63000                processes\n"
          "Max open files            65536                65536                files");
    Write("/dev/kmsg", "6,1,1,-;booted");
    for (int cpu = 0; cpu < 4; ++cpu) SetGovernor(cpu, "performance");
  }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = installation.root + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  void SetGovernor(int cpu, const std::string& governor) {
    Write("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cpufreq/scaling_governor", governor);
  }
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }

 private:
  const TemporaryFolder folder_ = *TemporaryFolder::Create();

 public:
  Installation installation;
  GpuState gpu;
};

}  // namespace mycc
