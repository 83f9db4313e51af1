// The rules for GPUs on shapes of every size, from one element to billions: there is a schedule, its default
// keeps the target's limits, and on small shapes it means what the workload means.
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "codegen/ir/verify.h"
#include "codegen/passes/lower.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/schedule/testing.h"
#include "tuner/cost/analytic.h"
#include "tuner/space/space.h"

namespace mycc {
namespace {

// $0, $1, $2: extents; $3: a float type; $4: $0 + 2, $5: $1 + 2, $6: $0 + 1, $7: $1 + 1.
constexpr const char* kTemplates[] = {
    "workload e(x: $3[$0,$1], b: $3[$1]) -> (y: $3[$0,$1]) { y[i,j] = x[i,j] * b[j] }",
    "workload t(x: $3[$0,$1,$2]) -> (y: $3[$0,$2,$1]) { y[n,i,j] = x[n,j,i] }",
    "workload r(x: $3[$0,$1]) -> (y: f32[$0]) { y[i] = sum[j:$1](f32(x[i,j])) }",
    "workload r(x: $3[$0,$1,$2]) -> (y: i32[$0,$1]) { y[i,j] = argmax[k:$2](x[i,j,k]) }",
    "workload c(x: $3[$0,$1]) -> (y: f32[$1]) { y[j] = sum[i:$0](f32(x[i,j])) }",
    "workload s(x: $3[$0,$1]) -> (y: $3[$0,$1]) {\n"
    "  m[i]: f32[$0] = max[j:$1](f32(x[i,j]))\n  e[i,j]: f32[$0,$1] = exp(f32(x[i,j]) - m[i])\n"
    "  s[i]: f32[$0] = sum[j:$1](e[i,j])\n  y[i,j] = $3(e[i,j] / s[i]) }",
    "workload g(a: f32[$0,$2], b: f32[$1,$2], d: f32[$1]) -> (y: f32[$0,$1]) {\n"
    "  c[i,j]: f32[$0,$1] = sum[k:$2](a[i,k] * b[j,k])\n  y[i,j] = max(c[i,j] + d[j], 0.0) }",
    "workload g(a: f32[$0,$2], b: f32[$2,$1]) -> (c: f32[$0,$1]) { c[i,j] = sum[k:$2](a[i,k] * b[k,j]) }",
    "workload v(a: $3[$0,$2], b: $3[1,$2]) -> (y: f32[$0,1]) { y[i,j] = sum[k:$2](f32(a[i,k]) * f32(b[j,k])) "
    "}",
    "workload v(a: $3[$2], b: $3[$2]) -> (y: f32[]) { y[] = sum[k:$2](f32(a[k]) * f32(b[k])) }",
    "workload d(x: $3[1,$0,$1,$2], w: $3[$2,3,3]) -> (y: f32[1,$0,$1,$2]) {\n"
    "  p[n,i,j,c]: $3[1,$4,$5,$2] = select(1 <= i && i < $6 && 1 <= j && j < $7, x[n,i-1,j-1,c], 0.0)\n"
    "  y[n,i,j,c] = sum[r:3, s:3](f32(p[n,i+r,j+s,c]) * f32(w[c,r,s])) }",
};

std::string Text(const char* text, int64_t a, int64_t b, int64_t c, const char* type) {
  return absl::Substitute(text, a, b, c, type, a + 2, b + 2, a + 1, b + 1);
}

// The default's schedule, with the target's limits kept; nullopt after a failure.
std::optional<Schedule> DefaultOf(const Workload& workload, const std::string& text) {
  const Sketch sketch = GenerateSketches(workload, TestGpu()).front();
  EXPECT_NE(sketch.name, "naive") << text;
  EXPECT_TRUE(sketch.space.Legal(sketch.default_choice)) << text;
  const absl::StatusOr<Trace> trace = sketch.instantiate(sketch.default_choice);
  const absl::StatusOr<Schedule> schedule = Replay(workload, TestGpu(), *trace);
  EXPECT_TRUE(schedule.ok()) << schedule.status() << "\n" << text;
  if (!schedule.ok()) return std::nullopt;
  EXPECT_TRUE(VerifyFunction(schedule->function()).ok()) << text << PrintTrace(*trace);
  const absl::StatusOr<LoweredFunction> lowered = Lower(schedule->function(), TestGpu());
  EXPECT_TRUE(lowered.ok()) << lowered.status() << "\n" << text << PrintTrace(*trace);
  const absl::StatusOr<double> seconds = EstimateSeconds(schedule->function(), TestGpu());
  EXPECT_TRUE(seconds.ok()) << seconds.status() << "\n" << text << PrintTrace(*trace);
  return *schedule;
}

class GpuShapesTest : public ::testing::TestWithParam<int> {};

TEST_P(GpuShapesTest, SmallShapesMeanWhatTheWorkloadMeans) {
  constexpr int64_t kExtents[] = {1, 1, 2, 3, 4, 7, 8, 13, 16, 17, 31, 32, 40};
  std::mt19937 rng(static_cast<uint32_t>(GetParam()));
  const auto pick = [&] { return kExtents[rng() % std::size(kExtents)]; };
  for (int round = 0; round < RandomSeeds(6); ++round) {
    const int64_t a = pick(), b = pick(), c = pick();
    const std::string text = Text(kTemplates[GetParam()], a, b, c, rng() % 2 ? "f16" : "f32");
    const Workload workload = CanonicalWorkload(text);
    const std::optional<Schedule> schedule = DefaultOf(workload, text);
    if (!schedule) continue;
    const absl::Status status = CheckFunction(workload, schedule->function(), 2e-2);
    EXPECT_TRUE(status.ok()) << status << "\n" << text << PrintFunction(schedule->function());
  }
}

TEST_P(GpuShapesTest, LargeShapesKeepTheLimits) {
  constexpr int64_t kExtents[] = {1, 3, 64, 127, 1000, 4096, 16384, 100000};
  std::mt19937 rng(static_cast<uint32_t>(GetParam()) + 100);
  for (int round = 0; round < RandomSeeds(20); ++round) {
    int64_t extents[3];
    for (int64_t& extent : extents) extent = kExtents[rng() % std::size(kExtents)];
    if (extents[0] * extents[1] > (int64_t{1} << 32) / extents[2]) extents[0] = 3;
    const std::string text =
        Text(kTemplates[GetParam()], extents[0], extents[1], extents[2], rng() % 2 ? "f16" : "f32");
    DefaultOf(CanonicalWorkload(text), text);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GpuShapesTest, ::testing::Range(0, static_cast<int>(std::size(kTemplates))));

// Shapes of models whose defaults once exceeded a limit of the target, so that the naive nest was all there
// was.
constexpr const char* kModelTexts[] = {
    // Three products as one: tiles of columns end where a matrix does.
    "workload qkv(x: f16[197,768], w: const f16[3,768,768]) -> (y: f16[3,197,768]) {\n"
    "  s[p,i,j]: f32[3,197,768] = sum[k:768](f32(x[i,k]) * f32(w[p,k,j]))\n  y[p,i,j] = f16(s[p,i,j]) }",
    // Windows that step by two.
    "workload pool(x: f16[1,112,112,64]) -> (y: f16[1,56,56,64]) {\n"
    "  p[n,i,j,c]: f16[1,113,113,64] = select(1 <= i && 1 <= j, x[n,i-1,j-1,c], f16(-inf))\n"
    "  y[n,i,j,c] = max[r:3, s:3](p[n,i*2+r,j*2+s,c]) }",
    "workload depthwise(x: f16[1,112,112,96], w: const f16[96,3,3]) -> (y: f16[1,56,56,96]) {\n"
    "  p[n,i,j,c]: f16[1,113,113,96] = select(i < 112 && j < 112, x[n,i,j,c], f16(0.0))\n"
    "  s[n,i,j,c]: f32[1,56,56,96] = sum[r:3, s:3](f32(p[n,i*2+r,j*2+s,c]) * f32(w[c,r,s]))\n"
    "  y[n,i,j,c] = f16(s[n,i,j,c]) }",
    // Rows of channels that are no power of two: 384 threads would leave too few registers.
    "workload depthwise(x: f16[1,14,14,384], w: const f16[384,3,3]) -> (y: f16[1,14,14,384]) {\n"
    "  p[n,i,j,c]: f16[1,16,16,384] = select(1 <= i && i < 15 && 1 <= j && j < 15, x[n,i-1,j-1,c], "
    "f16(0.0))\n"
    "  s[n,i,j,c]: f32[1,14,14,384] = sum[r:3, s:3](f32(p[n,i+r,j+s,c]) * f32(w[c,r,s]))\n"
    "  y[n,i,j,c] = f16(s[n,i,j,c]) }",
};

TEST(GpuShapes, DefaultsOfModelsKeepTheTargetsLimits) {
  for (const char* text : kModelTexts) EXPECT_TRUE(DefaultOf(CanonicalWorkload(text), text)) << text;
}

}  // namespace
}  // namespace mycc
