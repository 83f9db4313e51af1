// The features that processor names imply, compared with LLVM's tables.
#include "codegen/target/cpus.h"

#include <gtest/gtest.h>

#include <set>

#include "llvm/ADT/SmallVector.h"
#include "llvm/TargetParser/X86TargetParser.h"

namespace mycc {
namespace {

// LLVM lists features without the ones that they imply, so ours are added to close its list.
CpuFeatureSet FeaturesByLlvm(const std::string& mcpu) {
  llvm::SmallVector<llvm::StringRef> listed;
  llvm::X86::getFeaturesForCPU(mcpu, listed);
  CpuFeatureSet set = 0;
  for (const llvm::StringRef name : listed) {
    if (const auto feature = ParseCpuFeature(name.str())) set |= WithPrerequisites(*feature);
    // LLVM's gfni and vaes build on AVX2 where we have no use for vaes.
    if (name == "vaes" || name == "vpclmulqdq") set |= WithPrerequisites(CpuFeature::kAvx2);
  }
  for (CpuFeature amx : {CpuFeature::kAmxBf16, CpuFeature::kAmxInt8, CpuFeature::kAmxFp16}) set &= ~Bit(amx);
  return set;
}

TEST(Cpus, ImplyWhatLlvmSays) {
  for (const std::string& name : AllCpuNames()) {
    ASSERT_NE(llvm::X86::parseArchX86(name), llvm::X86::CK_None) << name;
    const CpuFeatureSet ours = *FeaturesImpliedBy(name), llvms = FeaturesByLlvm(name);
    for (int i = 0; i < kNumCpuFeatures; ++i) {
      const CpuFeature feature = static_cast<CpuFeature>(i);
      EXPECT_EQ(ours & Bit(feature), llvms & Bit(feature)) << name << " " << CpuFeatureName(feature);
    }
  }
}

TEST(Cpus, FeatureNamesParseWhatTheyPrint) {
  std::set<std::string> names;
  for (int i = 0; i < kNumCpuFeatures; ++i) {
    const CpuFeature feature = static_cast<CpuFeature>(i);
    EXPECT_EQ(ParseCpuFeature(CpuFeatureName(feature)), feature);
    names.insert(CpuFeatureName(feature));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(kNumCpuFeatures));
  EXPECT_FALSE(ParseCpuFeature("amx-tile").has_value());
}

TEST(Cpus, SetsAreClosed) {
  for (const std::string& name : AllCpuNames()) {
    const CpuFeatureSet set = *FeaturesImpliedBy(name);
    for (int i = 0; i < kNumCpuFeatures; ++i) {
      const CpuFeature feature = static_cast<CpuFeature>(i);
      if ((set & Bit(feature)) == 0) continue;
      EXPECT_EQ(WithPrerequisites(feature) & ~set, 0u) << name << " " << CpuFeatureName(feature);
      EXPECT_EQ(WithoutDependents(set, feature) & Bit(feature), 0u);
    }
  }
}

}  // namespace
}  // namespace mycc
