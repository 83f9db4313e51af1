// Compiled attention: default and random points of the rules for chains along one axis compute the reference,
// on scores of every size, hidden ones and NaN too.
#include <limits>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "gtest/gtest.h"
#include "tests/llvm/compiled.h"
#include "tests/llvm/jit.h"
#include "tests/llvm/sketch_points.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

Target ChainTarget(const char* text) {
  const absl::StatusOr<Target> target = ParseTarget(text);
  EXPECT_TRUE(target.ok()) << target.status();
  return *target;
}

Target WithTiles() {
  return ChainTarget("v1 cpu mcpu=sapphirerapids features=+amx-bf16,+amx-int8 l1d=48K l2=2M threads=2");
}

// Attention of `type` with 80 queries and 150 keys; $2 makes scores of s[h,i,j].
std::string Attention(const char* type, const char* score, int heads = 2) {
  const bool is_wide = std::string(type) == "f32";
  const std::string wide = is_wide ? "" : "f32", narrow = is_wide ? "" : type;
  return absl::Substitute(
      R"(workload w(q: $0[$1,80,32], k: $0[$1,150,32], v: $0[$1,150,48]) -> (o: $0[$1,80,48], z: f32[$1,80]) {
  s[h,i,j]: f32[$1,80,150] = sum[d:32]($3(q[h,i,d]) * $3(k[h,j,d]))
  c[h,i,j]: f32[$1,80,150] = $2
  m[h,i]: f32[$1,80] = max[j:150](c[h,i,j])
  e[h,i,j]: f32[$1,80,150] = exp(c[h,i,j] - m[h,i])
  l[h,i]: f32[$1,80] = sum[j:150](e[h,i,j])
  t[h,i,d]: f32[$1,80,48] = sum[j:150]($3($4(e[h,i,j])) * $3(v[h,j,d]))
  o[h,i,d] = $4(t[h,i,d] / l[h,i])
  z[h,i] = m[h,i] + log(l[h,i])
})",
      type, heads, score, wide, narrow);
}

Sketch StreamedSketch(const Workload& canonical, const Target& target) {
  std::vector<Sketch> sketches = GenerateSketches(canonical, target);
  EXPECT_TRUE(absl::StartsWith(sketches.front().name, "streamed")) << sketches.front().name;
  return std::move(sketches.front());
}

int64_t DefaultOf(const Sketch& sketch, const std::string& decision) {
  for (size_t d = 0; d < sketch.space.decisions.size(); ++d) {
    const Decision& found = sketch.space.decisions[d];
    if (absl::EndsWith(found.name, absl::StrCat(".", decision)))
      return found.choices[sketch.default_choice[d]];
  }
  ADD_FAILURE() << "no decision " << decision;
  return -1;
}

struct ChainCase {
  const char* name;
  const char* type;
  const char* score;
  double tolerance;
};

const ChainCase kChains[] = {
    {"f32", "f32", "s[h,i,j] * 0.2", 1e-4},
    {"f32_causal", "f32", "select(j <= i + 70, s[h,i,j] * 0.2, -inf)", 1e-4},
    {"bf16", "bf16", "s[h,i,j] * 0.2", 2e-2},
    {"bf16_causal", "bf16", "select(j <= i + 70, s[h,i,j] * 0.2, -inf)", 2e-2},
    {"bf16_window", "bf16", "select(j <= i + 70 && i < j + 9, s[h,i,j] * 0.2, -inf)", 2e-2},
    {"bf16_capped", "bf16", "tanh(s[h,i,j] * 0.1) * 4.0", 2e-2},
};

class CompiledChainsTest : public testing::TestWithParam<ChainCase> {};

TEST_P(CompiledChainsTest, ComputesTheReference) {
  const Workload canonical = CanonicalWorkload(Attention(GetParam().type, GetParam().score));
  const Target target = WithTiles();
  const Sketch sketch = StreamedSketch(canonical, target);
  const absl::Status status =
      CheckSketchPoint(canonical, target, sketch, sketch.default_choice, GetParam().tolerance);
  EXPECT_TRUE(status.ok()) << status;
  std::mt19937_64 random(7);
  for (int checked = 0, tried = 0; checked < 3 && tried < 200; ++tried) {
    Choice choice = sketch.default_choice;
    for (size_t d = 0; d < choice.size(); ++d)
      choice[d] = static_cast<int>(random() % sketch.space.decisions[d].choices.size());
    if (!sketch.space.constraint(choice)) continue;
    const absl::Status point = CheckSketchPoint(canonical, target, sketch, choice, GetParam().tolerance);
    EXPECT_TRUE(point.ok()) << point;
    ++checked;
  }
}

INSTANTIATE_TEST_SUITE_P(All, CompiledChainsTest, testing::ValuesIn(kChains),
                         [](const auto& info) { return std::string(info.param.name); });

// Keys and values are packed once for each head where the threads have as many heads each.
TEST(ChainSpaceTest, PacksOnceWhereHeadsAreEnough) {
  const Target target = WithTiles();
  const auto packs_once = [&](int heads) {
    return DefaultOf(StreamedSketch(CanonicalWorkload(Attention("bf16", "s[h,i,j]", heads)), target),
                     "pack_once");
  };
  EXPECT_EQ(packs_once(2), 1);
  EXPECT_EQ(packs_once(3), 0);
}

// The weights stay in registers between the exponential, their sum and the rounding.
TEST(ChainSpaceTest, WeightsAreSummedAndRoundedInOnePass) {
  const Target target = WithTiles();
  const Workload canonical = CanonicalWorkload(Attention("bf16", "s[h,i,j]"));
  const Sketch sketch = StreamedSketch(canonical, target);
  const absl::StatusOr<Trace> trace = sketch.instantiate(sketch.default_choice);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_TRUE(absl::StrContains(PrintTrace(*trace), "merge(")) << PrintTrace(*trace);
  const absl::StatusOr<Schedule> schedule = Replay(canonical, target, *trace);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const absl::StatusOr<LoweredFunction> lowered = Lower(schedule->function(), target);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  const auto assembly = EmitModule({EmitUnit{"k", *lowered}}, target, EmitKind::kAssembly);
  ASSERT_TRUE(assembly.ok()) << assembly.status();
  EXPECT_TRUE(absl::StrContains(*assembly, "vcvtneps2bf16"));  // subnormal weights may be zero
  EXPECT_TRUE(absl::StrContains(*assembly, "vreduceps"));
}

// Scores far below the maximum, and NaN: weights of zero, and a row of NaN. Keys are the unit vectors.
TEST(ChainValuesTest, ScoresOfEverySize) {
  const Workload canonical =
      CanonicalWorkload(R"(workload w(q: f32[64,96], k: f32[96,96], v: f32[96,32]) -> (o: f32[64,32]) {
  p[i,j]: f32[64,96] = sum[d:96](q[i,d] * k[j,d])
  m[i]: f32[64] = max[j:96](p[i,j])
  e[i,j]: f32[64,96] = exp(p[i,j] - m[i])
  l[i]: f32[64] = sum[j:96](e[i,j])
  t[i,d]: f32[64,32] = sum[j:96](e[i,j] * v[j,d])
  o[i,d] = t[i,d] / l[i]
})");
  std::vector<NDArray> inputs = RandomInputs(canonical, 5);
  const double numbers[] = {0, -50, -87.5, -100, -104, -150, -1e4, -3e38};
  for (int64_t i = 0; i < 64 * 96; ++i) inputs[0].Set(i, {numbers[(i * 7 + i / 96) % 8], 0});
  for (int64_t i = 0; i < 96 * 96; ++i) inputs[1].Set(i, {i % 97 == 0 ? 1.0 : 0.0, 0});
  inputs[0].Set(96 * 5 + 40, {std::numeric_limits<double>::quiet_NaN(), 0});
  const auto expected = RunReference(canonical, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (const Target& target : RunnableTargets()) {
    for (const Sketch& sketch : GenerateSketches(canonical, target)) {
      const absl::StatusOr<Trace> trace = sketch.instantiate(sketch.default_choice);
      ASSERT_TRUE(trace.ok()) << trace.status();
      const absl::StatusOr<Schedule> schedule = Replay(canonical, target, *trace);
      ASSERT_TRUE(schedule.ok()) << schedule.status();
      const absl::StatusOr<LoweredFunction> lowered = Lower(schedule->function(), target);
      ASSERT_TRUE(lowered.ok()) << lowered.status();
      const auto kernel = JitKernel::Compile(*lowered, target);
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      const absl::Status close = CheckClose((*kernel)->Run(inputs), *expected, 1e-4, "compiled code");
      EXPECT_TRUE(close.ok()) << target.mcpu << ", " << sketch.name << ": " << close;
    }
  }
}

}  // namespace
}  // namespace mycc
