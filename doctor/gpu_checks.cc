// Checks of NVIDIA GPUs: the driver, the compiler of their code, their settings and errors.
#include <fcntl.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "doctor/installation.h"
#include "worker/gpu_device.h"

namespace mycc {
namespace {

constexpr int kLeastCuda = 13000;  // what NVRTC 13 makes is loaded by drivers of release 580 and newer
constexpr uint32_t kHotCelsius = 85;
constexpr uint32_t kWorkersOwn = 2;  // processes of a worker on a GPU
constexpr char kNoGpu[] = "install NVIDIA's driver, release 580 or newer; in a container, its runtime class";

// The GPUs that are to be examined, by number; what is no GPU's name is the command line's affair.
absl::StatusOr<std::vector<int>> Ordinals(const Installation& installation) {
  std::vector<int> ordinals;
  if (installation.devices.empty()) {
    const absl::StatusOr<int> count = installation.system.count_gpus();
    for (int i = 0; count.ok() && i < *count; ++i) ordinals.push_back(i);
    return ordinals;
  }
  for (const std::string& device : installation.devices) {
    if (!absl::StartsWith(device, "cuda")) continue;
    const absl::StatusOr<int> ordinal = ParseGpuName(device);
    if (!ordinal.ok()) return ordinal.status();
    ordinals.push_back(*ordinal);
  }
  return ordinals;
}

void CheckSettings(const std::string& name, const GpuState& gpu, Findings* findings) {
  if (gpu.is_persistent == false) {
    findings->push_back(
        Warning(name + ": persistence mode is off, so the driver is loaded anew for each process",
                "nvidia-smi -pm 1, or the service nvidia-persistenced"));
  }
  if (gpu.computes_for_one_alone == true) {
    findings->push_back(Fault(name + ": its compute mode keeps it for one process; a worker has several",
                              "nvidia-smi -c DEFAULT"));
  }
  if (gpu.sm_mhz && gpu.most_sm_mhz && *gpu.sm_mhz < *gpu.most_sm_mhz) {
    findings->push_back(Ok(absl::StrCat(name, ": application clock ", *gpu.sm_mhz, " of ", *gpu.most_sm_mhz,
                                        " MHz; times are those of this clock")));
  }
}

void CheckHealth(const std::string& name, const GpuState& gpu, Findings* findings) {
  if (!gpu.slowed_by.empty()) {
    findings->push_back(
        Warning(absl::StrCat(name, ": slowed by ", absl::StrJoin(gpu.slowed_by, ", ")),
                "look at its cooling and its power limit: nvidia-smi -q -d PERFORMANCE,POWER"));
  }
  if (gpu.celsius && *gpu.celsius >= kHotCelsius) {
    findings->push_back(
        Warning(absl::StrCat(name, ": ", *gpu.celsius, " degrees Celsius"), "look at its cooling"));
  }
  if (gpu.processes > kWorkersOwn) {
    findings->push_back(Warning(absl::StrCat(name, ": ", gpu.processes, " processes compute on it now"),
                                "leave the GPU to the worker: times beside others' work are worthless"));
  }
  if (gpu.has_pending_page == true) {
    findings->push_back(Fault(name + ": a damaged page of its memory waits for a reset",
                              "stop what uses the GPU, then nvidia-smi --gpu-reset"));
  }
  if (gpu.uncorrected_errors.value_or(0) > 0) {
    findings->push_back(Fault(
        absl::StrCat(name, ": ", *gpu.uncorrected_errors, " errors of its memory could not be corrected"),
        "reset the GPU; replace it when they come again"));
  }
}

}  // namespace

Findings CheckDriver(const Installation& installation) {
  const absl::StatusOr<std::vector<int>> ordinals = Ordinals(installation);
  if (!ordinals.ok()) return {Fault(std::string(ordinals.status().message()), "name GPUs as cuda:0")};
  Findings findings;
  for (const int ordinal : *ordinals) {
    const absl::StatusOr<GpuState> gpu = installation.system.gpu(ordinal);
    if (!gpu.ok()) {
      findings.push_back(Fault(absl::StrCat("cuda:", ordinal, ": ", gpu.status().message()), kNoGpu));
      continue;
    }
    const std::string found =
        absl::StrCat("cuda:", ordinal, ": ", gpu->driver.empty() ? "driver" : gpu->driver, " for CUDA ",
                     gpu->cuda / 1000, ".", gpu->cuda % 1000 / 10);
    if (gpu->cuda < kLeastCuda) {
      findings.push_back(
          Fault(found + "; expected 13.0 or newer", "install release 580 or newer of the driver"));
    } else if (gpu->driver.empty()) {
      findings.push_back(
          Warning(found + "; NVML is missing, so nothing watches its clocks and temperature",
                  "install libnvidia-ml.so.1 of the driver; in a container, the capability utility"));
    } else {
      findings.push_back(Ok(found));
    }
  }
  return findings;
}

Findings CheckNvrtc(const Installation& installation) {
  const absl::StatusOr<std::vector<int>> ordinals = Ordinals(installation);
  if (!ordinals.ok() || ordinals->empty()) return {};
  const absl::StatusOr<std::string> compiler = installation.system.gpu_compiler();
  if (compiler.ok()) return {Ok(*compiler)};
  return {
      Fault(std::string(compiler.status().message()),
            "install NVRTC 13: the package nvidia-cuda-nvrtc of Python, or CUDA's toolkit with CUDA_HOME")};
}

Findings CheckGpus(const Installation& installation) {
  const absl::StatusOr<std::vector<int>> ordinals = Ordinals(installation);
  if (!ordinals.ok()) return {};
  Findings findings;
  for (const int ordinal : *ordinals) {
    const absl::StatusOr<GpuState> gpu = installation.system.gpu(ordinal);
    if (!gpu.ok()) continue;  // CheckDriver says why
    const std::string name = absl::StrCat("cuda:", ordinal);
    Findings of_gpu;
    CheckSettings(name, *gpu, &of_gpu);
    CheckHealth(name, *gpu, &of_gpu);
    if (of_gpu.empty()) of_gpu.push_back(Ok(absl::StrCat(name, ": ", gpu->model, ", nothing unusual")));
    findings.insert(findings.end(), of_gpu.begin(), of_gpu.end());
  }
  return findings;
}

// The driver reports a GPU's errors as Xid lines of the kernel's messages, which only some may read.
Findings CheckXids(const Installation& installation) {
  const absl::StatusOr<std::vector<int>> ordinals = Ordinals(installation);
  if (!ordinals.ok() || ordinals->empty()) return {};
  const int file =
      open(absl::StrCat(installation.root, "/dev/kmsg").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return {Ok("the kernel's messages cannot be read; as root, they can")};
  // A read of the device gives one message.
  int count = 0;
  std::string last, message(8192, '\0');
  for (ssize_t bytes = 0; (bytes = read(file, message.data(), message.size())) > 0;) {
    const std::string text = message.substr(0, static_cast<size_t>(bytes));
    const size_t begin = text.find("NVRM: Xid");
    if (begin == std::string::npos) continue;
    ++count;
    last = text.substr(begin, text.find('\n', begin) - begin);
  }
  close(file);
  if (count == 0) return {Ok("no Xid among the kernel's messages")};
  return {Warning(absl::StrCat(count, " since the host's start, the last one: ", last),
                  "look the Xid's number up in NVIDIA's list; reset or replace a GPU that has them again")};
}

}  // namespace mycc
