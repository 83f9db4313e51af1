// Targets as text: canonical form, presets, refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "codegen/target/cpus.h"
#include "codegen/target/presets.h"
#include "codegen/target/target.h"

namespace mycc {
namespace {

using testing::HasSubstr;

constexpr char kSapphireRapids[] =
    "v1 cpu mcpu=sapphirerapids features=+amx-bf16,+amx-int8 l1d=48K l2=2M threads=2";
constexpr char kH200[] = "v1 cuda arch=sm_90a model=\"NVIDIA H200\" sms=132 smem=232448 l2=60M";

std::string Reprint(const std::string& text) {
  const auto target = ParseTarget(text);
  return target.ok() ? PrintTarget(*target) : std::string(target.status().message());
}

TEST(TargetText, CanonicalTextIsItsOwnPrint) {
  EXPECT_EQ(Reprint(kSapphireRapids), kSapphireRapids);
  EXPECT_EQ(Reprint(kH200), kH200);
  EXPECT_EQ(Reprint("v1 cpu mcpu=znver3 l1d=32K l2=512K threads=8"),
            "v1 cpu mcpu=znver3 l1d=32K l2=512K threads=8");
}

TEST(TargetText, EveryPresetParsesWhatItPrints) {
  for (const std::string& name : PresetNames()) {
    const auto target = ParseTarget(name);
    ASSERT_TRUE(target.ok()) << name;
    const auto again = ParseTarget(PrintTarget(*target));
    ASSERT_TRUE(again.ok()) << PrintTarget(*target);
    EXPECT_EQ(*again, *target) << name;
  }
  EXPECT_EQ(Reprint("h200"), kH200);
  EXPECT_EQ(Reprint("sapphirerapids threads=2"), kSapphireRapids);
}

TEST(TargetText, OrderSpaceAndUnitsDoNotMatter) {
  EXPECT_EQ(Reprint("  cpu threads=2  l2=2048K l1d=49152 features=+amx-int8,+amx-bf16 mcpu=sapphirerapids "),
            kSapphireRapids);
  EXPECT_EQ(Reprint("cuda smem=227K l2=61440K model=\"NVIDIA H200\" arch=sm_90a sms=132"), kH200);
}

TEST(TargetText, FeaturesAreExactlyTheDifferenceFromTheProcessor) {
  // Implied already, or implied by what is added.
  EXPECT_EQ(Reprint("znver3 features=+avx2 threads=1"), "v1 cpu mcpu=znver3 l1d=32K l2=512K threads=1");
  EXPECT_EQ(Reprint("haswell features=+avx512bf16"),
            "v1 cpu mcpu=haswell features=+avx512bf16,+avx512bw,+avx512f l1d=32K l2=256K threads=4");
  // Features that build on one go with it.
  EXPECT_EQ(Reprint("haswell features=-avx"),
            "v1 cpu mcpu=haswell features=-avx,-avx2,-f16c,-fma l1d=32K l2=256K threads=4");
}

TEST(TargetText, RandomTargetsRoundTrip) {
  std::mt19937_64 random(1);
  const std::vector<std::string> cpus = AllCpuNames(), features = AllCpuFeatureNames();
  for (int i = 0; i < 500; ++i) {
    std::string text = "cpu mcpu=" + cpus[random() % cpus.size()];
    std::string list;
    for (int k = static_cast<int>(random() % 4); k > 0; --k) {
      list += (list.empty() ? "" : ",") + std::string(random() % 2 == 0 ? "+" : "-") +
              features[random() % features.size()];
    }
    if (!list.empty()) text += " features=" + list;
    text += " l1d=" + std::to_string(1 + random() % 100000) + " l2=" + std::to_string(1 + random() % 4096) +
            "K threads=3";
    const auto target = ParseTarget(text);
    if (!target.ok()) {
      EXPECT_THAT(std::string(target.status().message()), HasSubstr("contradicts")) << text;
      continue;
    }
    const auto again = ParseTarget(PrintTarget(*target));
    ASSERT_TRUE(again.ok()) << PrintTarget(*target);
    EXPECT_EQ(*again, *target) << text;
  }
}

TEST(TargetText, HostIsATargetThatRoundTrips) {
  const auto host = ParseTarget("host");
  ASSERT_TRUE(host.ok()) << host.status();
  EXPECT_EQ(Reprint(PrintTarget(*host)), PrintTarget(*host));
}

struct Refusal {
  const char* text;
  const char* message;
};

TEST(TargetText, RefusalsSayWhatAndWhatWasExpected) {
  const Refusal refusals[] = {
      {"", "target: no text; expected `cpu ...`, `cuda ...`, host or a preset"},
      {"h300",
       "target: unknown target \"h300\" (did you mean h100?); expected `cpu ...`, `cuda ...`, host or a "
       "preset: sapphirerapids "
       "icelake-server "
       "skylake-avx512 haswell znver2 znver3 znver4 a100 rtx3090 l40 h100 h200 b200"},
      {"v2 h200", "target: version v2; expected v1, the version this build reads"},
      {"cpu mcpu=znver3 l1d=32K threads=2", "target: no l2; expected mcpu, l1d, l2, threads"},
      {"cuda arch=sm_80", "target: no model; expected arch, model, sms, smem, l2"},
      {"znver3 l3=1M",
       "target: unknown key \"l3\" of a cpu target; expected mcpu, features, l1d, l2, threads or sums"},
      {"h200 mcpu=znver3",
       "target: unknown key \"mcpu\" of a cuda target; expected arch, model, sms, smem or l2"},
      {"znver3 l2=0", "target: l2=0; expected a size such as 48K, 2M or 232448"},
      {"znver3 l2=-1", "target: l2=-1; expected a size such as 48K, 2M or 232448"},
      {"znver3 l2=99999999999G", "target: l2=99999999999G; expected a size such as 48K, 2M or 232448"},
      {"znver3 threads=2.5", "target: threads=2.5; expected a whole number from 1"},
      {"znver3 threads=2 threads=2", "target: the key \"threads\" twice; expected it once"},
      {"znver3 fast", "target: \"fast\"; expected key=value"},
      {"h200 arch=90a", "target: arch=90a; expected one such as sm_80 or sm_90a"},
      {"h200 arch=sm_90x", "target: arch=sm_90x; expected one such as sm_80 or sm_90a"},
      {"h200 model=H200", "target: model=H200; expected a name in double quotes, such as \"NVIDIA H200\""},
      {"h200 model=\"NVIDIA", "target: an open quotation; expected a closing \""},
      {"znver3 features=avx2", "target: the feature \"avx2\" has no sign; expected + or - before each name"},
      {"znver3 features=+avx2,-avx",
       "target: +avx2 contradicts a feature that is taken away; expected one or the other"},
      {"h200\x01", "target: a byte that is not printable; expected words separated by spaces"},
  };
  for (const Refusal& refusal : refusals) {
    const auto target = ParseTarget(refusal.text);
    ASSERT_FALSE(target.ok()) << refusal.text;
    EXPECT_EQ(target.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(std::string(target.status().message()), refusal.message);
  }
  EXPECT_THAT(Reprint("cpu mcpu=zen3 l1d=32K l2=1M threads=1"),
              HasSubstr("unknown mcpu \"zen3\"; expected one of x86-64"));
  EXPECT_THAT(Reprint("znver3 features=+avx3"),
              HasSubstr("unknown feature \"avx3\" (did you mean avx?); expected one of sse4.2"));
}

TEST(TargetText, MutatedTextIsRefusedOrRoundTrips) {
  std::mt19937_64 random(2);
  const std::string seeds[] = {kSapphireRapids, kH200, "haswell threads=1", "znver3 features=+avx512f,-bmi"};
  for (int i = 0; i < 20000; ++i) {
    std::string text = seeds[random() % 4];
    for (int k = static_cast<int>(random() % 4); k >= 0; --k) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0: text[at] = static_cast<char>(random() % 256); break;
        case 1: text.erase(at, 1 + random() % 5); break;
        default: text.insert(at, seeds[random() % 4].substr(random() % 10, random() % 8)); break;
      }
      if (text.empty()) text = "x";
    }
    const auto target = ParseTarget(text);
    if (!target.ok()) {
      EXPECT_THAT(std::string(target.status().message()),
                  testing::AnyOf(HasSubstr("expected"), HasSubstr("contradicts")))
          << text;
      continue;
    }
    const auto again = ParseTarget(PrintTarget(*target));
    ASSERT_TRUE(again.ok()) << PrintTarget(*target) << " from " << text;
    EXPECT_EQ(*again, *target) << text;
  }
}

}  // namespace
}  // namespace mycc
