// Which target's code may run on which machine.
#include <gtest/gtest.h>

#include "codegen/target/presets.h"
#include "codegen/target/target.h"

namespace mycc {
namespace {

Target Parse(const std::string& text) {
  const auto target = ParseTarget(text);
  EXPECT_TRUE(target.ok()) << target.status();
  return target.value_or(Target());
}

// "" when code for one target runs on the other.
std::string WhyNot(const std::string& code, const std::string& machine) {
  std::string why;
  const bool compatible = IsCompatible(Parse(code), Parse(machine), &why);
  EXPECT_EQ(compatible, why.empty()) << why;
  return why;
}

TEST(Compatibility, EveryTargetRunsItsOwnCode) {
  for (const std::string& name : PresetNames()) EXPECT_EQ(WhyNot(name, name), "");
}

TEST(Compatibility, InstructionSetsMustBeASubset) {
  EXPECT_EQ(WhyNot("haswell", "znver3"), "");
  EXPECT_EQ(WhyNot("skylake-avx512", "icelake-server"), "");
  EXPECT_EQ(WhyNot("icelake-server", "znver4"), "");
  EXPECT_EQ(
      WhyNot("skylake-avx512", "znver3"),
      "code for skylake-avx512 needs avx512f avx512cd avx512bw avx512dq avx512vl, which this znver3 lacks");
  EXPECT_EQ(WhyNot("sapphirerapids", "sapphirerapids features=+amx-bf16"),
            "code for sapphirerapids needs amx-int8, which this sapphirerapids lacks");
}

TEST(Compatibility, CachesAndThreadsAreAssumptionsNotLimits) {
  EXPECT_EQ(WhyNot("znver3 l2=8M l1d=1M threads=64", "znver3 l2=512K threads=1"), "");
  EXPECT_EQ(WhyNot("h100 l2=100M", "h100"), "");
}

TEST(Compatibility, DirectSumsAreAskedForByTheMachine) {
  EXPECT_EQ(WhyNot("znver3 sums=direct", "znver3"), "");
  EXPECT_EQ(WhyNot("znver3 sums=direct", "znver3 sums=direct"), "");
  EXPECT_EQ(WhyNot("znver3", "znver3 sums=direct"),
            "code with sums of any kind, and the target is sums=direct");
}

TEST(Compatibility, CudaArchitectures) {
  EXPECT_EQ(WhyNot("a100 smem=99K sms=80", "rtx3090"), "");
  EXPECT_EQ(WhyNot("rtx3090", "a100"), "code for sm_86 does not run on sm_80");
  EXPECT_EQ(WhyNot("a100", "h100"), "code for sm_80 does not run on sm_90a");
  EXPECT_EQ(WhyNot("h100", "h200"), "");
  EXPECT_EQ(WhyNot("h100 arch=sm_90", "h200"), "");
  EXPECT_EQ(WhyNot("h100", "b200"), "code for sm_90a does not run on sm_100a");
}

TEST(Compatibility, CudaLimits) {
  EXPECT_EQ(WhyNot("a100", "rtx3090"),
            "code for 166912 bytes of shared memory, and NVIDIA GeForce RTX 3090 has 101376");
  EXPECT_EQ(WhyNot("a100 smem=99K", "rtx3090"),
            "code for 108 multiprocessors, and NVIDIA GeForce RTX 3090 has 82");
}

TEST(Compatibility, KindsDiffer) {
  EXPECT_EQ(WhyNot("znver3", "h100"), "code for a cpu target, and the machine is a cuda target");
}

TEST(VectorFacts, FollowTheInstructionSet) {
  EXPECT_EQ(VectorBytes(Parse("sapphirerapids")), 64);
  EXPECT_EQ(VectorRegisters(Parse("sapphirerapids")), 32);
  EXPECT_EQ(VectorBytes(Parse("znver3")), 32);
  EXPECT_EQ(VectorRegisters(Parse("znver3")), 16);
  EXPECT_EQ(VectorBytes(Parse("sapphirerapids features=-avx512f")), 32);
  EXPECT_EQ(VectorBytes(Parse("haswell features=-avx2")), 32);
  EXPECT_EQ(VectorBytes(Parse("haswell features=-avx")), 16);
}

TEST(VectorFacts, FeaturesOfATarget) {
  const CpuFeatures spr = FeaturesOf(Parse("sapphirerapids"));
  EXPECT_TRUE(spr.avx512bf16 && spr.avx512fp16 && spr.avxvnni && spr.amx_tile && spr.amx_bf16 &&
              spr.amx_int8);
  const CpuFeatures hidden = FeaturesOf(Parse("cpu mcpu=sapphirerapids l1d=48K l2=2M threads=1"));
  EXPECT_FALSE(hidden.amx_tile || hidden.amx_bf16 || hidden.amx_int8);
  const CpuFeatures zen = FeaturesOf(Parse("znver3"));
  EXPECT_TRUE(zen.avx2 && zen.fma && zen.f16c);
  EXPECT_FALSE(zen.avx512f || zen.avxvnni);
  EXPECT_FALSE(FeaturesOf(Parse("h200")).avx2);
}

}  // namespace
}  // namespace mycc
