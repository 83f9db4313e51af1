// The instruction sets that matter to generated code, and the sets that each of LLVM's processor names
// implies. Thread rule: constant data and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mycc {

// LLVM's names are in cpus.cc, in this order. AMX also needs the kernel's permission, and hypervisors often
// hide it. So no processor name implies it: a target with AMX names it. (amx-tile comes with any of the amx
// features.)
enum class CpuFeature : uint8_t {
  kSse42,
  kPopcnt,
  kMovbe,
  kLzcnt,
  kBmi,
  kBmi2,
  kAvx,
  kF16c,
  kFma,
  kAvx2,
  kAvxVnni,
  kAvxVnniInt8,
  kAvxIfma,
  kAvxNeConvert,
  kGfni,
  kAvx512F,
  kAvx512Cd,
  kAvx512Bw,
  kAvx512Dq,
  kAvx512Vl,
  kAvx512Ifma,
  kAvx512Vbmi,
  kAvx512Vbmi2,
  kAvx512Bitalg,
  kAvx512Vpopcntdq,
  kAvx512Vnni,
  kAvx512Bf16,
  kAvx512Fp16,
  kAmxBf16,
  kAmxInt8,
  kAmxFp16,
};
inline constexpr int kNumCpuFeatures = 31;

// A set of features, one bit each.
using CpuFeatureSet = uint64_t;
constexpr CpuFeatureSet Bit(CpuFeature feature) { return CpuFeatureSet{1} << static_cast<int>(feature); }

std::string CpuFeatureName(CpuFeature feature);
std::optional<CpuFeature> ParseCpuFeature(const std::string& name);
std::vector<std::string> AllCpuFeatureNames();

// A feature with all it builds on; a set without a feature and all that builds on it.
CpuFeatureSet WithPrerequisites(CpuFeature feature);
CpuFeatureSet WithoutDependents(CpuFeatureSet set, CpuFeature feature);

// The features that LLVM assumes for `mcpu`, without AMX; nullopt for an unknown name.
std::optional<CpuFeatureSet> FeaturesImpliedBy(const std::string& mcpu);
std::vector<std::string> AllCpuNames();

}  // namespace mycc
