// A target: the description of a machine that shapes generated code, and nothing else, as canonical text:
//   v1 cpu mcpu=sapphirerapids features=+amx-bf16,+amx-int8 l1d=48K l2=2M threads=2
//   v1 cuda arch=sm_90a model="NVIDIA H200" sms=132 smem=232448 l2=60M
// Thread rule: a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mycc {

enum class TargetKind : uint8_t { kCpu, kCuda };

struct Target {
  TargetKind kind = TargetKind::kCpu;
  // CPU. `mcpu` is LLVM's name. `features` are LLVM's names with a sign, sorted: those in which the target
  // differs from what mcpu implies.
  std::string mcpu;
  std::vector<std::string> features;
  int64_t l1d_bytes = 0;
  int64_t l2_bytes = 0;
  int threads = 1;  // a tuning assumption, not a limit
  // `sums=direct`: sums are computed as the workload writes them, never by a rewrite with fewer
  // multiplications and larger errors (Winograd).
  bool direct_sums = false;
  // CUDA.
  std::string arch;
  std::string model;
  int sms = 0;
  int64_t smem_bytes = 0;

  bool operator==(const Target&) const = default;
};

// Accepts canonical text (with or without `v1`), a preset's name ("h200", "sapphirerapids", "haswell",
// "znver3") or "host". Errors say which key is wrong and what was expected, and list the presets.
absl::StatusOr<Target> ParseTarget(const std::string& text);
std::string PrintTarget(const Target& target);

// This machine's CPU: name and features from cpuid (without LLVM), cache sizes, and the threads that this
// process may use.
Target DetectHostTarget();

// Facts derived from a CPU target.
struct CpuFeatures {
  bool avx = false, avx2 = false, fma = false, f16c = false;
  bool avx512f = false, avx512bw = false, avx512vl = false, avx512vnni = false, avx512bf16 = false,
       avx512fp16 = false;
  bool avxvnni = false, amx_tile = false, amx_bf16 = false, amx_int8 = false;
};
CpuFeatures FeaturesOf(const Target& target);
int VectorBytes(const Target& target);      // 64 with AVX-512, 32 with AVX, else 16
int VectorRegisters(const Target& target);  // 32 with AVX-512, else 16

// 90 for sm_90a; 0 for a CPU target.
int CudaArchOf(const Target& target);

// Compatibility: may code compiled for `code` run on `machine`? The instruction set must be a subset and
// limits no larger. `why` names the missing one.
bool IsCompatible(const Target& code, const Target& machine, std::string* why);
// Is a time measured on `machine` valid for the target `code`? They must be compatible, and the machine must
// have the target's number of threads.
bool IsMeasurableOn(const Target& code, const Target& machine, std::string* why);

}  // namespace mycc
