// Tables of cpuid's feature bits and of Intel's and AMD's model numbers, and the functions that read them.
#include "codegen/target/detect.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "codegen/target/features.h"

namespace mycc {
namespace {

using F = CpuFeature;

struct Identity {
  std::string vendor;
  int family = 0;
  int model = 0;
};

Identity IdentityOf(const CpuidSource& cpuid) {
  const CpuidRegisters zero = cpuid.Read(0, 0), one = cpuid.Read(1, 0);
  Identity identity;
  for (uint32_t part : {zero.ebx, zero.edx, zero.ecx}) {
    char letters[4];
    std::memcpy(letters, &part, sizeof(letters));
    identity.vendor.append(letters, sizeof(letters));
  }
  identity.family = one.eax >> 8 & 0xf;
  identity.model = one.eax >> 4 & 0xf;
  if (identity.family == 6 || identity.family == 15) identity.model |= (one.eax >> 16 & 0xf) << 4;
  if (identity.family == 15) identity.family += one.eax >> 20 & 0xff;
  return identity;
}

enum Register { kEax, kEbx, kEcx, kEdx };
// The register state that the operating system must save for a feature to be usable.
enum State { kAny, kYmm, kZmm, kTile };

struct FeatureBit {
  F feature;
  uint32_t leaf;
  uint32_t subleaf;
  Register reg;
  int bit;
  State state;
};

constexpr FeatureBit kFeatureBits[] = {
    {F::kFma, 1, 0, kEcx, 12, kYmm},           {F::kSse42, 1, 0, kEcx, 20, kAny},
    {F::kMovbe, 1, 0, kEcx, 22, kAny},         {F::kPopcnt, 1, 0, kEcx, 23, kAny},
    {F::kAvx, 1, 0, kEcx, 28, kYmm},           {F::kF16c, 1, 0, kEcx, 29, kYmm},
    {F::kLzcnt, 0x80000001, 0, kEcx, 5, kAny}, {F::kBmi, 7, 0, kEbx, 3, kAny},
    {F::kAvx2, 7, 0, kEbx, 5, kYmm},           {F::kBmi2, 7, 0, kEbx, 8, kAny},
    {F::kAvx512F, 7, 0, kEbx, 16, kZmm},       {F::kAvx512Dq, 7, 0, kEbx, 17, kZmm},
    {F::kAvx512Ifma, 7, 0, kEbx, 21, kZmm},    {F::kAvx512Cd, 7, 0, kEbx, 28, kZmm},
    {F::kAvx512Bw, 7, 0, kEbx, 30, kZmm},      {F::kAvx512Vl, 7, 0, kEbx, 31, kZmm},
    {F::kAvx512Vbmi, 7, 0, kEcx, 1, kZmm},     {F::kAvx512Vbmi2, 7, 0, kEcx, 6, kZmm},
    {F::kGfni, 7, 0, kEcx, 8, kAny},           {F::kAvx512Vnni, 7, 0, kEcx, 11, kZmm},
    {F::kAvx512Bitalg, 7, 0, kEcx, 12, kZmm},  {F::kAvx512Vpopcntdq, 7, 0, kEcx, 14, kZmm},
    {F::kAmxBf16, 7, 0, kEdx, 22, kTile},      {F::kAvx512Fp16, 7, 0, kEdx, 23, kZmm},
    {F::kAmxInt8, 7, 0, kEdx, 25, kTile},      {F::kAvxVnni, 7, 1, kEax, 4, kYmm},
    {F::kAvx512Bf16, 7, 1, kEax, 5, kZmm},     {F::kAmxFp16, 7, 1, kEax, 21, kTile},
    {F::kAvxIfma, 7, 1, kEax, 23, kYmm},       {F::kAvxVnniInt8, 7, 1, kEdx, 4, kYmm},
    {F::kAvxNeConvert, 7, 1, kEdx, 5, kYmm},
};
static_assert(std::size(kFeatureBits) == kNumCpuFeatures);

uint32_t Select(const CpuidRegisters& registers, Register reg) {
  return reg == kEax   ? registers.eax
         : reg == kEbx ? registers.ebx
         : reg == kEcx ? registers.ecx
                       : registers.edx;
}

std::string IntelName(int model, CpuFeatureSet features) {
  const auto has = [features](F feature) { return (features & Bit(feature)) != 0; };
  switch (model) {
    case 0x2a:
    case 0x2d: return "sandybridge";
    case 0x3a:
    case 0x3e: return "ivybridge";
    case 0x3c:
    case 0x3f:
    case 0x45:
    case 0x46: return "haswell";
    case 0x3d:
    case 0x47:
    case 0x4f:
    case 0x56: return "broadwell";
    case 0x4e:
    case 0x5e:
    case 0x8e:
    case 0x9e:
    case 0xa5:
    case 0xa6: return "skylake";
    // Three generations share this model number; their features differ.
    case 0x55:
      return has(F::kAvx512Bf16) ? "cooperlake" : has(F::kAvx512Vnni) ? "cascadelake" : "skylake-avx512";
    case 0x66: return "cannonlake";
    case 0x7d:
    case 0x7e: return "icelake-client";
    case 0x6a:
    case 0x6c: return "icelake-server";
    case 0x8c:
    case 0x8d: return "tigerlake";
    case 0xa7: return "rocketlake";
    case 0x97:
    case 0x9a: return "alderlake";
    case 0xbe: return "gracemont";
    case 0xb7:
    case 0xba:
    case 0xbf: return "raptorlake";
    case 0xaa:
    case 0xac: return "meteorlake";
    case 0xb5:
    case 0xc5: return "arrowlake";
    case 0xc6: return "arrowlake-s";
    case 0xbd: return "lunarlake";
    case 0xaf: return "sierraforest";
    case 0x8f: return "sapphirerapids";
    case 0xcf: return "emeraldrapids";
    case 0xad: return "graniterapids";
    case 0xae: return "graniterapids-d";
    default: return "";
  }
}

std::string AmdName(int family, int model) {
  if (family == 0x17) return (model >= 0x30 && model <= 0x4f) || model >= 0x60 ? "znver2" : "znver1";
  if (family == 0x19) return model <= 0x0f || (model >= 0x20 && model <= 0x5f) ? "znver3" : "znver4";
  return family == 0x1a ? "znver5" : "";
}

std::string LevelOf(CpuFeatureSet features) {
  for (const char* level : {"x86-64-v4", "x86-64-v3", "x86-64-v2"}) {
    const CpuFeatureSet needed = *FeaturesImpliedBy(level);
    if ((features & needed) == needed) return level;
  }
  return "x86-64";
}

// Bytes of the data or unified cache of a level; 0 when cpuid does not report it.
int64_t CacheBytes(const CpuidSource& cpuid, const std::string& vendor, int level) {
  const uint32_t leaf = vendor == "GenuineIntel" ? 4 : 0x8000001d;
  constexpr uint32_t kMostCaches = 16;
  for (uint32_t subleaf = 0; subleaf < kMostCaches; ++subleaf) {
    const CpuidRegisters cache = cpuid.Read(leaf, subleaf);
    const uint32_t type = cache.eax & 0x1f;
    if (type == 0) return 0;
    const bool holds_data = type == 1 || type == 3;
    if (!holds_data || static_cast<int>(cache.eax >> 5 & 7) != level) continue;
    const int64_t ways = (cache.ebx >> 22) + 1, partitions = (cache.ebx >> 12 & 0x3ff) + 1,
                  line = (cache.ebx & 0xfff) + 1;
    return ways * partitions * line * (static_cast<int64_t>(cache.ecx) + 1);
  }
  return 0;
}

}  // namespace

CpuFeatureSet DetectFeatures(const CpuidSource& cpuid) {
  constexpr uint32_t kOsXsave = 1u << 27;
  constexpr uint64_t kYmmState = 0x6, kZmmState = 0xe6, kTileState = 0x60000;
  const uint64_t saved = (cpuid.Read(1, 0).ecx & kOsXsave) != 0 ? cpuid.ReadXcr0() : 0;
  const auto usable = [saved](State state) {
    const uint64_t needed = state == kYmm    ? kYmmState
                            : state == kZmm  ? kZmmState
                            : state == kTile ? kTileState
                                             : 0;
    return (saved & needed) == needed;
  };
  CpuFeatureSet found = 0;
  for (const FeatureBit& bit : kFeatureBits) {
    const uint32_t value = Select(cpuid.Read(bit.leaf, bit.subleaf), bit.reg);
    if ((value >> bit.bit & 1) != 0 && usable(bit.state)) found |= Bit(bit.feature);
  }
  // A hypervisor may hide a prerequisite and still report the feature.
  CpuFeatureSet consistent = found;
  for (int i = 0; i < kNumCpuFeatures; ++i) {
    if ((WithPrerequisites(static_cast<F>(i)) & ~found) != 0) consistent &= ~Bit(static_cast<F>(i));
  }
  return consistent;
}

std::string DetectCpuName(const CpuidSource& cpuid) {
  const Identity identity = IdentityOf(cpuid);
  const CpuFeatureSet features = DetectFeatures(cpuid);
  std::string name;
  if (identity.vendor == "GenuineIntel" && identity.family == 6) name = IntelName(identity.model, features);
  if (identity.vendor == "AuthenticAMD") name = AmdName(identity.family, identity.model);
  if (identity.vendor == "HygonGenuine") name = "znver1";
  return name.empty() ? LevelOf(features) : name;
}

Target DetectTarget(const CpuidSource& cpuid, int threads) {
  constexpr int64_t kUsualL1d = 32 * 1024, kUsualL2 = 512 * 1024;
  const std::string vendor = IdentityOf(cpuid).vendor;
  Target target;
  target.mcpu = DetectCpuName(cpuid);
  target.features = DifferenceFrom(target.mcpu, DetectFeatures(cpuid));
  target.l1d_bytes = CacheBytes(cpuid, vendor, 1);
  target.l2_bytes = CacheBytes(cpuid, vendor, 2);
  if (target.l1d_bytes == 0) target.l1d_bytes = kUsualL1d;
  if (target.l2_bytes == 0) target.l2_bytes = kUsualL2;
  target.threads = std::max(threads, 1);
  return target;
}

}  // namespace mycc
