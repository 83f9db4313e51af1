#include "codegen/target/features.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/did_you_mean.h"
#include "base/status.h"

namespace mycc {
namespace {

absl::StatusOr<CpuFeature> ParseSigned(const std::string& text) {
  const bool has_sign = !text.empty() && (text[0] == '+' || text[0] == '-');
  if (!has_sign)
    return absl::InvalidArgumentError(
        absl::StrCat("the feature \"", text, "\" has no sign; expected + or - before each name"));
  if (const auto feature = ParseCpuFeature(text.substr(1))) return *feature;
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown feature \"", text.substr(1), "\"", DidYouMean(text.substr(1), AllCpuFeatureNames()),
      "; expected one of ", absl::StrJoin(AllCpuFeatureNames(), " ")));
}

}  // namespace

absl::StatusOr<CpuFeatureSet> ResolveFeatures(const std::string& mcpu,
                                              const std::vector<std::string>& features) {
  const auto implied = FeaturesImpliedBy(mcpu);
  if (!implied) {
    return absl::InvalidArgumentError(absl::StrCat("unknown mcpu \"", mcpu, "\"",
                                                   DidYouMean(mcpu, AllCpuNames()), "; expected one of ",
                                                   absl::StrJoin(AllCpuNames(), " ")));
  }
  CpuFeatureSet set = *implied, added = 0, removed = 0;
  for (const std::string& text : features) {
    MYCC_ASSIGN_OR_RETURN(const CpuFeature feature, ParseSigned(text));
    (text[0] == '+' ? added : removed) |= Bit(feature);
    if (text[0] == '+') set |= WithPrerequisites(feature);
  }
  for (int i = 0; i < kNumCpuFeatures; ++i) {
    const CpuFeature feature = static_cast<CpuFeature>(i);
    if ((removed & Bit(feature)) == 0) continue;
    set = WithoutDependents(set, feature);
  }
  for (int i = 0; i < kNumCpuFeatures; ++i) {
    const CpuFeature feature = static_cast<CpuFeature>(i);
    if ((added & Bit(feature)) == 0 || (set & Bit(feature)) != 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("+", CpuFeatureName(feature),
                     " contradicts a feature that is taken away; expected one or the other"));
  }
  return set;
}

std::vector<std::string> DifferenceFrom(const std::string& mcpu, CpuFeatureSet set) {
  const CpuFeatureSet implied = *FeaturesImpliedBy(mcpu);
  std::vector<std::string> difference;
  for (int i = 0; i < kNumCpuFeatures; ++i) {
    const CpuFeatureSet bit = Bit(static_cast<CpuFeature>(i));
    if ((set & bit) == (implied & bit)) continue;
    difference.push_back(
        absl::StrCat((set & bit) != 0 ? "+" : "-", CpuFeatureName(static_cast<CpuFeature>(i))));
  }
  std::ranges::sort(difference,
                    [](const std::string& a, const std::string& b) { return a.substr(1) < b.substr(1); });
  return difference;
}

CpuFeatures FeaturesOf(const Target& target) {
  CpuFeatures facts;
  if (target.kind != TargetKind::kCpu) return facts;
  const auto resolved = ResolveFeatures(target.mcpu, target.features);
  const CpuFeatureSet set = resolved.ok() ? *resolved : 0;
  const auto has = [set](CpuFeature feature) { return (set & Bit(feature)) != 0; };
  facts.avx = has(CpuFeature::kAvx);
  facts.avx2 = has(CpuFeature::kAvx2);
  facts.fma = has(CpuFeature::kFma);
  facts.f16c = has(CpuFeature::kF16c);
  facts.avx512f = has(CpuFeature::kAvx512F);
  facts.avx512bw = has(CpuFeature::kAvx512Bw);
  facts.avx512vl = has(CpuFeature::kAvx512Vl);
  facts.avx512vnni = has(CpuFeature::kAvx512Vnni);
  facts.avx512bf16 = has(CpuFeature::kAvx512Bf16);
  facts.avx512fp16 = has(CpuFeature::kAvx512Fp16);
  facts.avxvnni = has(CpuFeature::kAvxVnni);
  facts.amx_bf16 = has(CpuFeature::kAmxBf16);
  facts.amx_int8 = has(CpuFeature::kAmxInt8);
  facts.amx_tile = facts.amx_bf16 || facts.amx_int8 || has(CpuFeature::kAmxFp16);
  return facts;
}

int VectorBytes(const Target& target) {
  const CpuFeatures features = FeaturesOf(target);
  return features.avx512f ? 64 : features.avx ? 32 : 16;
}

int VectorRegisters(const Target& target) { return FeaturesOf(target).avx512f ? 32 : 16; }

}  // namespace mycc
