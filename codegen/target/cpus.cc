#include "codegen/target/cpus.h"

#include <iterator>
#include <string_view>

namespace mycc {
namespace {

using F = CpuFeature;

struct FeatureInfo {
  std::string_view name;
  CpuFeatureSet prerequisites;
};

constexpr CpuFeatureSet kAvx512Base = Bit(F::kAvx512F);
constexpr FeatureInfo kFeatures[kNumCpuFeatures] = {
    {"sse4.2", 0},
    {"popcnt", 0},
    {"movbe", 0},
    {"lzcnt", 0},
    {"bmi", 0},
    {"bmi2", 0},
    {"avx", Bit(F::kSse42)},
    {"f16c", Bit(F::kAvx)},
    {"fma", Bit(F::kAvx)},
    {"avx2", Bit(F::kAvx)},
    {"avxvnni", Bit(F::kAvx2)},
    {"avxvnniint8", Bit(F::kAvx2)},
    {"avxifma", Bit(F::kAvx2)},
    {"avxneconvert", Bit(F::kAvx2)},
    {"gfni", 0},
    {"avx512f", Bit(F::kAvx2) | Bit(F::kF16c) | Bit(F::kFma)},
    {"avx512cd", kAvx512Base},
    {"avx512bw", kAvx512Base},
    {"avx512dq", kAvx512Base},
    {"avx512vl", kAvx512Base},
    {"avx512ifma", kAvx512Base},
    {"avx512vbmi", Bit(F::kAvx512Bw)},
    {"avx512vbmi2", Bit(F::kAvx512Bw)},
    {"avx512bitalg", Bit(F::kAvx512Bw)},
    {"avx512vpopcntdq", kAvx512Base},
    {"avx512vnni", kAvx512Base},
    {"avx512bf16", Bit(F::kAvx512Bw)},
    {"avx512fp16", Bit(F::kAvx512Bw) | Bit(F::kAvx512Dq) | Bit(F::kAvx512Vl)},
    {"amx-bf16", 0},
    {"amx-int8", 0},
    {"amx-fp16", 0},
};

constexpr CpuFeatureSet kV2 = Bit(F::kSse42) | Bit(F::kPopcnt);
constexpr CpuFeatureSet kSandyBridge = kV2 | Bit(F::kAvx);
constexpr CpuFeatureSet kHaswell = kSandyBridge | Bit(F::kMovbe) | Bit(F::kLzcnt) | Bit(F::kBmi) |
                                   Bit(F::kBmi2) | Bit(F::kF16c) | Bit(F::kFma) | Bit(F::kAvx2);
constexpr CpuFeatureSet kAlderLake = kHaswell | Bit(F::kGfni) | Bit(F::kAvxVnni);
constexpr CpuFeatureSet kArrowLake =
    kAlderLake | Bit(F::kAvxVnniInt8) | Bit(F::kAvxIfma) | Bit(F::kAvxNeConvert);
constexpr CpuFeatureSet kSkylakeAvx512 = kHaswell | Bit(F::kAvx512F) | Bit(F::kAvx512Cd) | Bit(F::kAvx512Bw) |
                                         Bit(F::kAvx512Dq) | Bit(F::kAvx512Vl);
constexpr CpuFeatureSet kCascadeLake = kSkylakeAvx512 | Bit(F::kAvx512Vnni);
constexpr CpuFeatureSet kCannonLake = kSkylakeAvx512 | Bit(F::kAvx512Ifma) | Bit(F::kAvx512Vbmi);
constexpr CpuFeatureSet kIceLake = kCannonLake | Bit(F::kGfni) | Bit(F::kAvx512Vbmi2) |
                                   Bit(F::kAvx512Bitalg) | Bit(F::kAvx512Vpopcntdq) | Bit(F::kAvx512Vnni);
constexpr CpuFeatureSet kZen4 = kIceLake | Bit(F::kAvx512Bf16);
constexpr CpuFeatureSet kSapphireRapids = kZen4 | Bit(F::kAvx512Fp16) | Bit(F::kAvxVnni);

struct CpuInfo {
  std::string_view name;
  CpuFeatureSet features;
};

constexpr CpuInfo kCpus[] = {
    {"x86-64", 0},
    {"x86-64-v2", kV2},
    {"x86-64-v3", kHaswell},
    {"x86-64-v4", kSkylakeAvx512},
    {"nehalem", kV2},
    {"westmere", kV2},
    {"sandybridge", kSandyBridge},
    {"ivybridge", kSandyBridge | Bit(F::kF16c)},
    {"haswell", kHaswell},
    {"broadwell", kHaswell},
    {"skylake", kHaswell},
    {"skylake-avx512", kSkylakeAvx512},
    {"cascadelake", kCascadeLake},
    {"cooperlake", kCascadeLake | Bit(F::kAvx512Bf16)},
    {"cannonlake", kCannonLake},
    {"icelake-client", kIceLake},
    {"icelake-server", kIceLake},
    {"tigerlake", kIceLake},
    {"rocketlake", kIceLake},
    {"alderlake", kAlderLake},
    {"gracemont", kAlderLake},
    {"raptorlake", kAlderLake},
    {"meteorlake", kAlderLake},
    {"arrowlake", kArrowLake},
    {"arrowlake-s", kArrowLake},
    {"lunarlake", kArrowLake},
    {"sierraforest", kArrowLake},
    {"sapphirerapids", kSapphireRapids},
    {"emeraldrapids", kSapphireRapids},
    {"graniterapids", kSapphireRapids},
    {"graniterapids-d", kSapphireRapids},
    {"znver1", kHaswell},
    {"znver2", kHaswell},
    {"znver3", kHaswell},
    {"znver4", kZen4},
    {"znver5", kZen4 | Bit(F::kAvxVnni)},
};

}  // namespace

std::string CpuFeatureName(CpuFeature feature) {
  return std::string(kFeatures[static_cast<int>(feature)].name);
}

std::optional<CpuFeature> ParseCpuFeature(const std::string& name) {
  for (int i = 0; i < kNumCpuFeatures; ++i) {
    if (kFeatures[i].name == name) return static_cast<CpuFeature>(i);
  }
  return std::nullopt;
}

std::vector<std::string> AllCpuFeatureNames() {
  std::vector<std::string> names;
  for (const FeatureInfo& feature : kFeatures) names.emplace_back(feature.name);
  return names;
}

CpuFeatureSet WithPrerequisites(CpuFeature feature) {
  CpuFeatureSet set = Bit(feature);
  // Prerequisites precede the features that build on them, so one pass from the last to the first finds all.
  for (int i = kNumCpuFeatures - 1; i >= 0; --i) {
    if ((set >> i & 1) != 0) set |= kFeatures[i].prerequisites;
  }
  return set;
}

CpuFeatureSet WithoutDependents(CpuFeatureSet set, CpuFeature feature) {
  for (int i = 0; i < kNumCpuFeatures; ++i) {
    if ((WithPrerequisites(static_cast<CpuFeature>(i)) & Bit(feature)) != 0)
      set &= ~Bit(static_cast<CpuFeature>(i));
  }
  return set;
}

std::optional<CpuFeatureSet> FeaturesImpliedBy(const std::string& mcpu) {
  for (const CpuInfo& cpu : kCpus) {
    if (cpu.name == mcpu) return cpu.features;
  }
  return std::nullopt;
}

std::vector<std::string> AllCpuNames() {
  std::vector<std::string> names;
  for (const CpuInfo& cpu : kCpus) names.emplace_back(cpu.name);
  return names;
}

}  // namespace mycc
