// The rules for attention on GPUs: their points are lowered to roles, rings and fragments, and the machine's
// interpreter computes what the stages say, and finds no races.
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "codegen/passes/lower.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/passes/lowered_function.h"
#include "tests/schedule/testing.h"
#include "tuner/space/space.h"

namespace mycc {
namespace {

// Few multiprocessors, so that persistent blocks have several tiles.
Target Hopper() { return *ParseTarget("v1 cuda arch=sm_90a model=\"NVIDIA H200\" sms=2 smem=232448 l2=60M"); }
Target Ampere() {
  return *ParseTarget("v1 cuda arch=sm_80 model=\"NVIDIA A100\" sms=108 smem=166912 l2=40M");
}

// Attention of 2 heads in f16 with the same keys, 200 rows each.
std::string Attention(int keys, int depth, const std::string& mask) {
  const std::string text =
      R"(workload attention(q: f16[2,200,$1], k: f16[1,$0,$1], v: f16[1,$0,$1]) -> (o: f16[2,200,$1]) {
  s[h,i,j]: f32[2,200,$0] = sum[d:$1](f32(q[h,i,d]) * f32(k[h//2,j,d]))
  c[h,i,j]: f32[2,200,$0] = $2
  m[h,i]: f32[2,200] = max[j:$0](c[h,i,j])
  e[h,i,j]: f32[2,200,$0] = exp(c[h,i,j] - m[h,i])
  l[h,i]: f32[2,200] = sum[j:$0](e[h,i,j])
  t[h,i,d]: f32[2,200,$1] = sum[j:$0](f32(f16(e[h,i,j])) * f32(v[h//2,j,d]))
  o[h,i,d] = f16(t[h,i,d] / l[h,i])
})";
  const std::string scaled = "s[h,i,j] * 0.125";
  return absl::Substitute(text, keys, depth,
                          mask.empty() ? scaled : absl::StrCat("select(", mask, ", ", scaled, ", -inf)"));
}
constexpr char kNoMask[] = "", kCausal[] = "j <= i", kWindow[] = "j <= i && i < j + 70";

std::string ValueOf(const Sketch& sketch, const Choice& choice, const std::string& name) {
  for (size_t d = 0; d < choice.size(); ++d) {
    if (absl::EndsWith(sketch.space.decisions[d].name, "." + name))
      return absl::StrCat(sketch.space.decisions[d].choices[choice[d]]);
  }
  return "";
}

// Fewer queries than a tile has rows: the stages one by one.
TEST(GpuStreamedTest, FewQueries) {
  const Workload workload = CanonicalWorkload(
      R"(workload decoding(q: f16[8,4,64], k: f16[8,300,64], v: f16[8,300,64]) -> (o: f16[8,4,64]) {
  s[h,i,j]: f32[8,4,300] = sum[d:64](f32(q[h,i,d]) * f32(k[h,j,d]))
  m[h,i]: f32[8,4] = max[j:300](s[h,i,j])
  e[h,i,j]: f32[8,4,300] = exp(s[h,i,j] - m[h,i])
  l[h,i]: f32[8,4] = sum[j:300](e[h,i,j])
  t[h,i,d]: f32[8,4,64] = sum[j:300](f32(f16(e[h,i,j])) * f32(v[h,j,d]))
  o[h,i,d] = f16(t[h,i,d] / l[h,i])
})");
  const Sketch sketch = GenerateSketches(workload, Hopper()).front();
  const Trace trace = sketch.instantiate(sketch.default_choice).value();
  const absl::StatusOr<Schedule> schedule = Replay(workload, Hopper(), trace);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_TRUE(Lower(schedule->function(), Hopper()).ok()) << PrintTrace(trace);
}

// Checks legal points, the default one first; those in which `decision` is `value`, where named.
void CheckLowered(const std::string& text, const Target& target, const std::string& rule, int most,
                  const std::string& decision = "", const std::string& value = "") {
  const Workload workload = CanonicalWorkload(text);
  const std::vector<Sketch> sketches = GenerateSketches(workload, target);
  ASSERT_EQ(sketches.front().name, rule);
  const Sketch& sketch = sketches.front();
  std::mt19937 rng(7);
  int checked = 0;
  for (int round = 0; round < 400 && checked < most; ++round) {
    Choice choice = sketch.default_choice;
    for (size_t d = 0; round > 0 && d < choice.size(); ++d)
      choice[d] = static_cast<int>(rng() % sketch.space.decisions[d].choices.size());
    if (!sketch.space.Legal(choice)) continue;
    if (!decision.empty() && ValueOf(sketch, choice, decision) != value) continue;
    const Trace trace = sketch.instantiate(choice).value();
    const absl::StatusOr<Schedule> schedule = Replay(workload, target, trace);
    ASSERT_TRUE(schedule.ok()) << schedule.status() << "\n" << PrintTrace(trace);
    const absl::StatusOr<LoweredFunction> lowered = Lower(schedule->function(), target);
    ASSERT_TRUE(lowered.ok()) << lowered.status() << "\n" << PrintTrace(trace);
    const absl::Status same = CheckFunction(workload, WholeFunction(*lowered), 2e-2);
    ASSERT_TRUE(same.ok()) << same << "\n" << PrintTrace(trace);
    ++checked;
  }
  EXPECT_EQ(checked, most);
}

// A persistent block numbers the steps of all its tiles alike, and a mask's loops have fewer steps.
TEST(GpuStreamedTest, PersistentBlocksRefuseLoopsOfComputedLength) {
  const Workload workload = CanonicalWorkload(Attention(200, 64, kCausal));
  const Sketch sketch = GenerateSketches(workload, Hopper()).front();
  Trace trace = sketch.instantiate(sketch.default_choice).value();
  const Trace persist = ParseTrace("v1\npersist(t7.a0+a1.0, 2)\n").value();
  trace.steps.insert(trace.steps.end(), persist.steps.begin(), persist.steps.end());
  const absl::StatusOr<Schedule> schedule = Replay(workload, Hopper(), trace);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_THAT(Lower(schedule->function(), Hopper()).status().message(),
              ::testing::HasSubstr("needs steps of one number; loop t7.r0.0 has a computed length"));
}

constexpr char kWarpgroups[] = "streamed_warp_specialized", kWarps[] = "streamed_multistage";

TEST(GpuStreamedTest, Warpgroups) { CheckLowered(Attention(200, 64, kNoMask), Hopper(), kWarpgroups, 3); }
TEST(GpuStreamedTest, TwoWarpgroups) {
  CheckLowered(Attention(150, 32, kNoMask), Hopper(), kWarpgroups, 2, "groups", "2");
}
TEST(GpuStreamedTest, PersistentBlocks) {
  CheckLowered(Attention(150, 32, kNoMask), Hopper(), kWarpgroups, 2, "persist", "1");
}
TEST(GpuStreamedTest, CausalOfWarpgroups) {
  CheckLowered(Attention(200, 32, kCausal), Hopper(), kWarpgroups, 3);
}
TEST(GpuStreamedTest, WindowOfWarpgroups) {
  CheckLowered(Attention(200, 32, kWindow), Hopper(), kWarpgroups, 3);
}
TEST(GpuStreamedTest, Warps) { CheckLowered(Attention(150, 32, kNoMask), Ampere(), kWarps, 3); }
TEST(GpuStreamedTest, CausalOfWarps) { CheckLowered(Attention(200, 48, kCausal), Ampere(), kWarps, 3); }
TEST(GpuStreamedTest, WindowOfWarps) { CheckLowered(Attention(200, 32, kWindow), Ampere(), kWarps, 3); }

}  // namespace
}  // namespace mycc
