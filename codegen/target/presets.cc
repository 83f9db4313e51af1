#include "codegen/target/presets.h"

#include <string_view>

namespace mycc {
namespace {

constexpr int64_t kKiB = 1024;
constexpr int64_t kMiB = 1024 * kKiB;

struct CpuPreset {
  std::string_view name;  // LLVM's name too
  int64_t l1d_bytes;
  int64_t l2_bytes;
  int threads;  // cores of one socket of a common model
  bool amx;
};

constexpr CpuPreset kCpuPresets[] = {
    {"sapphirerapids", 48 * kKiB, 2 * kMiB, 56, true},  {"icelake-server", 48 * kKiB, 1280 * kKiB, 40, false},
    {"skylake-avx512", 32 * kKiB, 1 * kMiB, 28, false}, {"haswell", 32 * kKiB, 256 * kKiB, 4, false},
    {"znver2", 32 * kKiB, 512 * kKiB, 64, false},       {"znver3", 32 * kKiB, 512 * kKiB, 64, false},
    {"znver4", 32 * kKiB, 1 * kMiB, 96, false},
};

struct CudaPreset {
  std::string_view name;
  std::string_view arch;
  std::string_view model;
  int sms;
  int64_t smem_bytes;  // the maximum for one block
  int64_t l2_bytes;
};

constexpr CudaPreset kCudaPresets[] = {
    {"a100", "sm_80", "NVIDIA A100", 108, 163 * kKiB, 40 * kMiB},
    {"rtx3090", "sm_86", "NVIDIA GeForce RTX 3090", 82, 99 * kKiB, 6 * kMiB},
    {"l40", "sm_89", "NVIDIA L40", 142, 99 * kKiB, 96 * kMiB},
    {"h100", "sm_90a", "NVIDIA H100", 132, 227 * kKiB, 50 * kMiB},
    {"h200", "sm_90a", "NVIDIA H200", 132, 227 * kKiB, 60 * kMiB},
    {"b200", "sm_100a", "NVIDIA B200", 148, 227 * kKiB, 126 * kMiB},
};

}  // namespace

std::optional<Target> FindPreset(const std::string& name) {
  Target target;
  for (const CpuPreset& preset : kCpuPresets) {
    if (preset.name != name) continue;
    target.mcpu = name;
    if (preset.amx) target.features = {"+amx-bf16", "+amx-int8"};
    target.l1d_bytes = preset.l1d_bytes;
    target.l2_bytes = preset.l2_bytes;
    target.threads = preset.threads;
    return target;
  }
  for (const CudaPreset& preset : kCudaPresets) {
    if (preset.name != name) continue;
    target.kind = TargetKind::kCuda;
    target.arch = std::string(preset.arch);
    target.model = std::string(preset.model);
    target.sms = preset.sms;
    target.smem_bytes = preset.smem_bytes;
    target.l2_bytes = preset.l2_bytes;
    return target;
  }
  return std::nullopt;
}

std::vector<std::string> PresetNames() {
  std::vector<std::string> names;
  for (const CpuPreset& preset : kCpuPresets) names.emplace_back(preset.name);
  for (const CudaPreset& preset : kCudaPresets) names.emplace_back(preset.name);
  return names;
}

}  // namespace mycc
