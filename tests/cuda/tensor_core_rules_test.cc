// The rules for tensor cores: the default and random points of their spaces lower, mean what the workload
// means (the interpreter runs the pipelines), and compile without spills.
#include <algorithm>
#include <random>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "codegen/cuda/emit.h"
#include "codegen/schedule/schedule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda/emitted.h"
#include "tests/cuda/rule_points.h"
#include "tests/cuda/tensor_core_cases.h"
#include "tests/schedule/testing.h"
#include "tuner/space/space.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

void CheckPoints(const char* text, const char* rule, const Target& target) {
  const Workload workload = CanonicalWorkload(text);
  const std::vector<Sketch> sketches = GenerateSketches(workload, target);
  const auto found =
      std::ranges::find_if(sketches, [&](const Sketch& s) { return absl::StrContains(s.name, rule); });
  ASSERT_NE(found, sketches.end()) << sketches[0].name;
  CheckPointsOf(workload, *found, target, RandomSeeds(1));
}

// The emitted code of the default and of random points, run on the host.
void CheckOnHostToo(const char* text, const Target& target) {
  const Workload workload = CanonicalWorkload(text);
  const std::vector<Sketch> sketches = GenerateSketches(workload, target);
  const auto found =
      std::ranges::find_if(sketches, [](const Sketch& s) { return absl::StrContains(s.name, "multistage"); });
  ASSERT_NE(found, sketches.end());
  std::vector<Choice> choices = {found->default_choice};
  std::mt19937 rng(3);
  const size_t wanted = 1 + RandomSeeds(1);
  for (int tries = 0; tries < 10000 && choices.size() < wanted; ++tries) {
    Choice choice;
    for (const Decision& decision : found->space.decisions)
      choice.push_back(static_cast<int>(rng() % decision.choices.size()));
    if (found->space.Legal(choice)) choices.push_back(choice);
  }
  ASSERT_EQ(choices.size(), wanted) << "legal points";
  std::vector<ScheduledCase> points;
  for (const Choice& choice : choices) {
    const absl::StatusOr<Trace> trace = found->instantiate(choice);
    ASSERT_TRUE(trace.ok()) << trace.status();
    const absl::StatusOr<Schedule> schedule = Replay(workload, target, *trace);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    points.push_back({PrintTrace(*trace), workload, schedule->function()});
  }
  const std::vector<absl::Status> results = CheckOnHost(points, OutputTolerance(workload));
  for (size_t i = 0; i < points.size(); ++i)
    EXPECT_TRUE(results[i].ok()) << results[i].message() << points[i].name;
}

class TensorCoreRules : public testing::TestWithParam<Case> {};
TEST_P(TensorCoreRules, PointsMeanTheWorkload) {
  CheckPoints(GetParam().workload, "warp_specialized", Sm90a());
}
INSTANTIATE_TEST_SUITE_P(Cases, TensorCoreRules, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

class Float8Rules : public testing::TestWithParam<Case> {};
TEST_P(Float8Rules, PointsMeanTheWorkload) { CheckPoints(GetParam().workload, "multistage", Sm89()); }
TEST_P(Float8Rules, FragmentsAreRight) { CheckOnHostToo(GetParam().workload, Sm89()); }
INSTANTIATE_TEST_SUITE_P(Cases, Float8Rules, testing::ValuesIn(kFloat8Cases),
                         [](const auto& info) { return std::string(info.param.name); });

class MultistageRules : public testing::TestWithParam<Case> {};
TEST_P(MultistageRules, PointsMeanTheWorkload) { CheckPoints(GetParam().workload, "multistage", Sm80()); }
TEST_P(MultistageRules, FragmentsAreRight) { CheckOnHostToo(GetParam().workload, Sm80()); }
INSTANTIATE_TEST_SUITE_P(Cases, MultistageRules, testing::ValuesIn(kMultistageCases),
                         [](const auto& info) { return std::string(info.param.name); });

// Random points of a sketch whose decision that ends in `suffix` has a value that `wanted` accepts.
void CheckPointsOfWhere(const Workload& workload, const Sketch& sketch, const char* suffix,
                        bool (*wanted)(int64_t value), const Target& target) {
  const auto& decisions = sketch.space.decisions;
  const auto decision = std::ranges::find_if(
      decisions, [&](const Decision& candidate) { return absl::EndsWith(candidate.name, suffix); });
  ASSERT_NE(decision, decisions.end());
  std::mt19937 rng(2);
  int left = 2;
  for (int tries = 0; tries < 100000 && left > 0 && !testing::Test::HasFatalFailure(); ++tries) {
    Choice choice;
    for (const Decision& each : decisions) choice.push_back(static_cast<int>(rng() % each.choices.size()));
    if (!sketch.space.Legal(choice) || !wanted(sketch.space.Value(choice, decision->name))) continue;
    CheckPoint(workload, sketch, choice, target);
    --left;
  }
  EXPECT_EQ(left, 0);
}

// The same of the first sketch.
void CheckPointsWhere(const Workload& workload, const char* suffix, bool (*wanted)(int64_t value),
                      const Target& target = Sm90a()) {
  CheckPointsOfWhere(workload, GenerateSketches(workload, target).front(), suffix, wanted, target);
}

// Pairs of blocks that share an operand: whichever side differs, however the operands lie.
TEST(WarpSpecializedRule, ClustersShareTiles) {
  constexpr const char* kWorkloads[] = {
      R"(workload g(a: bf16[128,136], b: bf16[40,136]) -> (c: bf16[128,40]) {
  s[i,j]: f32[128,40] = sum[k:136](f32(a[i,k]) * f32(b[j,k]))
  c[i,j] = bf16(s[i,j]) })",
      R"(workload g(a: f16[72,64], b: f16[64,128]) -> (c: f16[72,128]) {
  s[i,j]: f32[72,128] = sum[k:64](f32(a[i,k]) * f32(b[k,j]))
  c[i,j] = f16(s[i,j]) })",
      R"(workload c(x: f16[2,8,7,64], w: f16[24,3,3,64]) -> (y: f16[2,8,7,24]) {
  p[n,i,j,c]: f16[2,10,9,64] = select(1 <= i && 1 <= j && i < 9 && j < 8, x[n,i-1,j-1,c], 0.0)
  a[n,i,j,k]: f32[2,8,7,24] = sum[r:3, s:3, c:64](f32(p[n,i+r,j+s,c]) * f32(w[k,r,s,c]))
  y[n,i,j,k] = f16(a[n,i,j,k]) })",
  };
  for (const char* text : kWorkloads) {
    const Workload workload = CanonicalWorkload(text);
    CheckPointsWhere(workload, ".cluster", [](int64_t cluster) { return cluster > 1; });
  }
}

// One tile that covers the output is not in a loop over blocks: its sums are cleared before the roles and
// stored behind them, and the computing role has products alone. All its warpgroups take part all the same.
TEST(WarpSpecializedRule, OneTileHasAllItsWarpgroups) {
  const Workload workload =
      CanonicalWorkload(R"(workload g(a: f16[184,104], b: f16[112,104]) -> (c: f16[184,112]) {
  s[i,j]: f32[184,112] = sum[k:104](f32(a[i,k]) * f32(b[j,k]))
  c[i,j] = f16(s[i,j]) })");
  const Trace trace =
      ParseTrace(
          "v1\nsplit(t2.a1, [192])\nsplit(t2.a0, [192])\nsplit(t2.r0, [64])\n"
          "reorder([t2.a1.0, t2.a0.0, t2.r0.0, t2.a1.1, t2.a0.1, t2.r0.1])\nfuse([t2.a1.0, t2.a0.0])\n"
          "bind(t2.a1.0+a0.0, block)\ncache_write(t2, t2.a1.0+a0.0)\nreverse_inline(t3)\n"
          "stage_shared(t2, t0, t2.r0.0, shared)\nstage_shared(t2, t1, t2.r0.0, shared)\n"
          "layout(t0.s, 0, 128)\nlayout(t1.s, 0, 128)\ntensorize_tile(t2.a1.1, wgmma.f16, 3, "
          "1)\npipeline(t2.r0.0, bulk, 2)\n")
          .value();
  const Target target = Sm90a();
  const Schedule schedule = Replay(workload, target, trace).value();
  const LoweredFunction lowered = Lower(schedule.function(), target).value();
  EXPECT_TRUE(CheckLowered(workload, lowered, OutputTolerance(workload)).ok());
  const CudaProgram program = EmitCuda(lowered, target, "k").value();
  EXPECT_THAT(program.source, HasSubstr("__launch_bounds__(512, 1)"));
  EXPECT_THAT(program.source, HasSubstr("  if (thread < 384) {\n    // compute\n"));
}

// Tiles that are shared out by steps: of fewer tiles than SMs, and, on a GPU with few, after whole ones.
TEST(WarpSpecializedRule, PointsThatStream) {
  const auto streams = [](int64_t persist) { return persist == 2; };
  Target small = Sm90a();
  small.sms = 5;
  CheckPointsWhere(CanonicalWorkload(
                       R"(workload g(a: bf16[200,520], b: bf16[136,520], d: bf16[136]) -> (c: bf16[200,136]) {
  s[i,j]: f32[200,136] = sum[k:520](f32(a[i,k]) * f32(b[j,k]))
  c[i,j] = bf16(max(s[i,j] + f32(d[j]), 0.0)) })"),
                   ".persist", streams, small);
  CheckPointsWhere(
      CanonicalWorkload(R"(workload c(x: f16[2,8,7,64], w: f16[24,3,3,64]) -> (y: f16[2,8,7,24]) {
  p[n,i,j,c]: f16[2,10,9,64] = select(1 <= i && 1 <= j && i < 9 && j < 8, x[n,i-1,j-1,c], 0.0)
  a[n,i,j,k]: f32[2,8,7,24] = sum[r:3, s:3, c:64](f32(p[n,i+r,j+s,c]) * f32(w[k,r,s,c]))
  y[n,i,j,k] = f16(a[n,i,j,k]) })"),
      ".persist", streams, small);
  CheckPointsWhere(
      CanonicalWorkload(R"(workload g(a: f8e4m3[64,1040], b: f8e4m3[40,1040]) -> (c: f32[64,40]) {
  c[i,j] = sum[k:1040](f32(a[i,k]) * f32(b[j,k])) })"),
      ".persist", streams);
}

// Few more rows than a tile of a power of two has: as the columns of one tile, or of two.
TEST(WarpSpecializedRule, TilesThatFitTheirColumns) {
  const auto fits = [](int64_t bn) { return bn == 136; };
  CheckPointsWhere(CanonicalWorkload(R"(workload g(a: bf16[129,264], b: bf16[72,264]) -> (c: bf16[129,72]) {
  s[i,j]: f32[129,72] = sum[k:264](f32(a[i,k]) * f32(b[j,k]))
  c[i,j] = bf16(s[i,j]) })"),
                   ".bn", fits);
  CheckPointsWhere(CanonicalWorkload(R"(workload g(a: f16[70,264], b: f16[268,264]) -> (c: f32[70,268]) {
  c[i,j] = sum[k:264](f32(a[i,k]) * f32(b[j,k])) })"),
                   ".bn", fits);
}

// Weights of many rows are read once, by as many blocks as there are SMs: parts of the depth.
TEST(WarpSpecializedRule, FewTilesAreDividedByDefault) {
  const auto split_of = [](int64_t m, int64_t n, int64_t k) {
    const Workload workload =
        CanonicalWorkload(absl::Substitute("workload g(a: bf16[$0,$2], b: bf16[$1,$2]) -> (c: f32[$0,$1]) { "
                                           "c[i,j] = sum[k:$2](f32(a[i,k]) * f32(b[j,k])) }",
                                           m, n, k));
    const Sketch sketch = GenerateSketches(workload, Sm90a()).front();
    return sketch.space.Value(sketch.default_choice, "t2.split");
  };
  EXPECT_EQ(split_of(129, 4096, 14336), 4);
  EXPECT_EQ(split_of(4096, 4096, 4096), 1);
  EXPECT_EQ(split_of(1024, 1024, 1024), 1);
}

// Operands lie along the depth in their copies, wherever they did before; rows end where vectors do.
TEST(WarpSpecializedRule, RoundsOperandsInCopies) {
  constexpr const char* kWorkloads[] = {
      R"(workload g(a: f32[72,40], b: const f32[520,40]) -> (s: f32[72,520]) {
  s[i,j] = sum[k:40](tf32(a[i,k]) * tf32(b[j,k])) })",
      R"(workload g(a: f32[37,70], b: const f32[37,515], d: f32[515]) -> (c: f32[70,515]) {
  s[i,j]: f32[70,515] = sum[k:37](tf32(a[k,i]) * tf32(b[k,j]))
  c[i,j] = s[i,j] + d[j] })",
      R"(workload g(a: f32[2,64,33], b: const f32[2,33,600]) -> (s: f32[2,64,600]) {
  s[n,i,j] = sum[k:33](tf32(a[n,i,k]) * tf32(b[n,k,j])) })"};
  for (const char* text : kWorkloads) {
    const Workload workload = CanonicalWorkload(text);
    const std::vector<Sketch> sketches = SketchesWith(workload, "wgmma.tf32", Sm90a());
    ASSERT_EQ(sketches.size(), 1) << text;
    EXPECT_EQ(sketches[0].name, "warp_specialized");
    CheckPointsOf(workload, sketches[0], Sm90a(), /*count=*/2);
    EXPECT_TRUE(SketchesWith(workload, "wgmma", Sm80()).empty());
  }
}

// Rounded copies cost more than mma.sync saves where each element has few products. An operand that the
// workload does not round keeps its digits.
TEST(WarpSpecializedRule, RoundsOnlyWhatIsMultipliedOften) {
  constexpr const char* kWorkloads[] = {
      R"(workload g(a: f32[512,64], b: f32[512,64]) -> (s: f32[512,512]) {
  s[i,j] = sum[k:64](tf32(a[i,k]) * tf32(b[j,k])) })",
      R"(workload g(a: f32[4096,64], b: f32[4096,64]) -> (s: f32[4096,4096]) {
  s[i,j] = sum[k:64](a[i,k] * tf32(b[j,k])) })",
      R"(workload c(x: f32[8,66,66,64], w: const f32[1024,3,3,64]) -> (y: f32[8,64,64,1024]) {
  y[n,i,j,k] = sum[r:3, s:3, c:64](tf32(x[n,i+r,j+s,c]) * tf32(w[k,r,s,c])) })"};
  for (const char* text : kWorkloads)
    EXPECT_TRUE(SketchesWith(CanonicalWorkload(text), "wgmma", Sm90a()).empty()) << text;
  EXPECT_EQ(
      SketchesWith(CanonicalWorkload(R"(workload g(a: f32[4096,64], b: f32[4096,64]) -> (s: f32[4096,4096]) {
  s[i,j] = sum[k:64](tf32(a[i,k]) * tf32(b[j,k])) })"),
                   "wgmma.tf32", Sm90a())
          .size(),
      1);
}

// The pixels that a stem steps over are channels of its copy, which the copy engine fetches.
TEST(WarpSpecializedRule, FoldsTheStridesOfFewChannels) {
  constexpr const char* kWorkloads[] = {
      R"(workload c(x: f16[2,20,18,3], w: f16[24,7,7,3], b: f16[24]) -> (y: f16[2,10,9,24]) {
  p[n,i,j,c]: f16[2,26,24,3] = select(3 <= i && 3 <= j && i < 23 && j < 21, x[n,i-3,j-3,c], 0.0)
  a[n,i,j,k]: f32[2,10,9,24] = sum[r:7, s:7, c:3](f32(p[n,i*2+r,j*2+s,c]) * f32(w[k,r,s,c]))
  y[n,i,j,k] = f16(max(a[n,i,j,k] + f32(b[k]), 0.0)) })",
      R"(workload c(x: bf16[1,32,32,3], w: const bf16[40,4,4,3]) -> (y: bf16[1,8,8,40]) {
  a[n,i,j,k]: f32[1,8,8,40] = sum[r:4, s:4, c:3](f32(x[n,i*4+r,j*4+s,c]) * f32(w[k,r,s,c]))
  y[n,i,j,k] = bf16(a[n,i,j,k]) })"};
  for (const char* text : kWorkloads) {
    const Workload workload = CanonicalWorkload(text);
    Target direct = Sm90a();
    direct.direct_sums = true;
    EXPECT_TRUE(SketchesWith(workload, "fold_stride", direct).empty());
    EXPECT_TRUE(SketchesWith(workload, "fold_stride", Sm80()).empty());
    const std::vector<Sketch> sketches = SketchesWith(workload, "fold_stride", Sm90a());
    ASSERT_EQ(sketches.size(), 1) << text;
    EXPECT_EQ(sketches[0].name, "warp_specialized");
    CheckPointsOf(workload, sketches[0], Sm90a(), /*count=*/2);
  }
}

// A tile of pixels for all taps of a window, and weights that are fetched once.
TEST(WarpSpecializedRule, WindowsAndStationaryWeights) {
  Target few_sms = Sm90a();
  few_sms.sms = 2;
  constexpr const char* kWorkloads[] = {
      R"(workload c(x: f16[8,8,7,64], w: f16[24,3,3,64]) -> (y: f16[8,8,7,24]) {
  p[n,i,j,c]: f16[8,10,9,64] = select(1 <= i && 1 <= j && i < 9 && j < 8, x[n,i-1,j-1,c], 0.0)
  a[n,i,j,k]: f32[8,8,7,24] = sum[r:3, s:3, c:64](f32(p[n,i+r,j+s,c]) * f32(w[k,r,s,c]))
  y[n,i,j,k] = f16(a[n,i,j,k]) })",
      R"(workload c(x: bf16[4,20,9,128], w: bf16[40,2,3,128]) -> (y: bf16[4,16,7,40]) {
  a[n,i,j,k]: f32[4,16,7,40] = sum[r:2, s:3, c:128](f32(x[n,i+r*4,j+s,c]) * f32(w[k,r,s,c]))
  y[n,i,j,k] = bf16(a[n,i,j,k]) })"};
  const auto is_on = [](int64_t value) { return value != 0; };
  for (const char* text : kWorkloads) {
    const Workload workload = CanonicalWorkload(text);
    CheckPointsWhere(workload, ".window", is_on, few_sms);
    CheckPointsWhere(workload, ".stationary", is_on, few_sms);
  }
  // A stem: the taps of a row and their channels are the depth of a product.
  const Workload stem =
      CanonicalWorkload(R"(workload c(x: f16[2,32,32,3], w: f16[24,7,7,3]) -> (y: f16[2,16,16,24]) {
  p[n,i,j,c]: f16[2,38,38,3] = select(3 <= i && 3 <= j && i < 35 && j < 35, x[n,i-3,j-3,c], 0.0)
  a[n,i,j,k]: f32[2,16,16,24] = sum[r:7, s:7, c:3](f32(p[n,i*2+r,j*2+s,c]) * f32(w[k,r,s,c]))
  y[n,i,j,k] = f16(a[n,i,j,k]) })");
  const std::vector<Sketch> folded = SketchesWith(stem, "fold_stride", few_sms);
  ASSERT_EQ(folded.size(), 1);
  CheckPointsOfWhere(stem, folded[0], ".window", is_on, few_sms);
  CheckPointsOfWhere(stem, folded[0], ".stationary", is_on, few_sms);
  EXPECT_EQ(SketchesWith(stem, "fuse([t3.r1, t3.r2.1])", few_sms).size(), 1);
}

// The default leaves out a window, joined taps or stationary weights that the copy engine cannot fetch.
TEST(WarpSpecializedRule, DefaultsOfWindowsLower) {
  Target few_sms = Sm90a();
  few_sms.sms = 2;
  constexpr const char* kWorkloads[] = {
      // Zeros after the second panel of stationary weights.
      R"(workload g(a: f16[600,72], b: f16[24,72]) -> (y: f16[600,24]) {
  s[i,j]: f32[600,24] = sum[k:72](f32(a[i,k]) * f32(b[j,k]))
  y[i,j] = f16(s[i,j]) })",
      // Taps that may be joined: along an axis that ends with the tensor, or is padded, or of short pixels.
      R"(workload c(x: f16[4,18,17,16], w: f16[24,3,2,16]) -> (y: f16[4,16,16,24]) {
  a[n,i,j,k]: f32[4,16,16,24] = sum[r:3, s:2, c:16](f32(x[n,i+r,j+s,c]) * f32(w[k,r,s,c]))
  y[n,i,j,k] = f16(a[n,i,j,k]) })",
      R"(workload c(x: f16[4,14,14,16], w: f16[24,2,2,16]) -> (y: f16[4,15,15,24]) {
  p[n,i,j,c]: f16[4,16,16,16] = select(1 <= i && 1 <= j && i < 15 && j < 15, x[n,i-1,j-1,c], 0.0)
  a[n,i,j,k]: f32[4,15,15,24] = sum[r:2, s:2, c:16](f32(p[n,i+r,j+s,c]) * f32(w[k,r,s,c]))
  y[n,i,j,k] = f16(a[n,i,j,k]) })",
      R"(workload c(x: f16[4,17,17,8], w: f16[24,2,2,8]) -> (y: f16[4,16,16,24]) {
  a[n,i,j,k]: f32[4,16,16,24] = sum[r:2, s:2, c:8](f32(x[n,i+r,j+s,c]) * f32(w[k,r,s,c]))
  y[n,i,j,k] = f16(a[n,i,j,k]) })"};
  for (const char* text : kWorkloads) {
    const Workload workload = CanonicalWorkload(text);
    const std::vector<Sketch> sketches = SketchesWith(workload, "wgmma", few_sms);
    ASSERT_FALSE(sketches.empty()) << text;
    EXPECT_EQ(sketches[0].name, "warp_specialized");
    CheckPoint(workload, sketches[0], sketches[0].default_choice, few_sms);
  }
}

// Points that a search tries first, beside the default.
TEST(WarpSpecializedRule, HasStarts) {
  const Workload workload =
      CanonicalWorkload(R"(workload g(a: bf16[4096,4096], b: bf16[4096,4096]) -> (c: bf16[4096,4096]) {
  s[i,j]: f32[4096,4096] = sum[k:4096](f32(a[i,k]) * f32(b[j,k]))
  c[i,j] = bf16(s[i,j]) })");
  const Sketch sketch = GenerateSketches(workload, Sm90a()).front();
  std::set<Choice> points = {sketch.default_choice};
  for (const Choice& start : sketch.starts) {
    EXPECT_TRUE(sketch.space.Legal(start));
    EXPECT_TRUE(points.insert(start).second);
    const absl::StatusOr<Trace> trace = sketch.instantiate(start);
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_TRUE(Replay(workload, Sm90a(), *trace).ok()) << PrintTrace(*trace);
  }
  EXPECT_GE(points.size(), 2);
}

// mma.sync rounds what tf32() rounds in a product of any size; and what the copy engine cannot fetch is for
// mma.sync on Hopper too.
TEST(MultistageRule, OtherTypesOnHopper) {
  CheckPoints(R"(workload g(a: f32[136,64], b: f32[88,64]) -> (s: f32[136,88]) {
  s[i,j] = sum[k:64](tf32(a[i,k]) * tf32(b[j,k])) })",
              "multistage", Sm90a());
  CheckPoints(R"(workload g(a: i8[136,120], b: i8[88,120]) -> (s: i32[136,88]) {
  s[i,j] = sum[k:120](i32(a[i,k]) * i32(b[j,k])) })",
              "multistage", Sm90a());
  CheckPoints(R"(workload g(a: f8e4m3[136,120], b: f8e4m3[88,120]) -> (s: f32[136,88]) {
  s[i,j] = sum[k:120](f32(a[i,k]) * f32(b[j,k])) })",
              "multistage", Sm90a());
}

// A product that repeats one tensor, broadcasts or has axes of one element has a schedule, whatever its
// types.
TEST(TensorCoreRules, UnusualProductsAreNeverNaive) {
  constexpr const char* kWorkloads[] = {
      "workload g(a: f32[70,64]) -> (y: f32[70,70]) { y[i,j] = sum[k:64](a[i,k] * a[j,k]) }",
      "workload g(a: i8[64,64]) -> (y: i32[64,64]) { y[i,j] = sum[k:64](i32(a[i,k]) * i32(a[k,j])) }",
      "workload g(a: f16[70,64], s: i32[20]) -> (y: f32[20,70]) {"
      " y[i,j] = sum[k:64](f32(a[clamp(s[i], 0, 69),k]) * f32(a[j,k])) }",
      "workload g(a: f16[70,64], s: i32[20], b: f16[40,64]) -> (y: f32[20,40]) {"
      " y[i,j] = sum[k:64](f32(a[clamp(s[i], 0, 69),k]) * f32(b[j,k])) }",
      "workload g(a: f32[70,64], s: i32[20], b: f32[40,64]) -> (y: f32[20,40]) {"
      " y[i,j] = sum[k:64](a[clamp(s[i], 0, 69),k] * b[j,k]) }",
      "workload g(a: f16[70,64], b: f16[64]) -> (y: f32[70,40]) {"
      " y[i,j] = sum[k:64](f32(a[i,k]) * f32(b[k])) }",
      "workload g(a: f16[3,70,64], b: f16[40,64]) -> (y: f32[3,70,40]) {"
      " y[n,i,j] = sum[k:64](f32(a[n,i,k]) * f32(b[j,k])) }",
      "workload g(a: f32[70,64], b: f32[40,64]) -> (y: f32[70,40,1]) {"
      " y[i,j,m] = sum[k:64](a[i,k] * b[j,k]) }",
      "workload g(a: f16[70,64], b: f16[40,64]) -> (y: f32[70,40,7]) {"
      " y[i,j,m] = sum[k:64](f32(a[i,k]) * f32(b[j,k])) }",
      "workload g(a: f16[70,80], b: f16[40,64]) -> (y: f32[70,40]) {"
      " y[i,j] = sum[k:64](f32(a[i,k]) * f32(b[j,k])) }",
      "workload g(a: f16[70,100], b: f16[50,25]) -> (y: f32[70,50]) {"
      " y[i,j] = sum[k:25](f32(a[i,j//13*25+k]) * f32(b[j,k])) }"};
  for (const char* text : kWorkloads) {
    const Workload workload = CanonicalWorkload(text);
    for (const Target& target : {Sm80(), Sm90a()}) {
      for (const Sketch& sketch : GenerateSketches(workload, target)) {
        EXPECT_NE(sketch.name, "naive") << text;
        CheckPoint(workload, sketch, sketch.default_choice, target);
      }
    }
  }
}

// Numbers that tf32() does not round keep their digits.
TEST(MultistageRule, UnroundedFloatsAreForOrdinaryCores) {
  for (const char* product : {"a[i,k] * b[j,k]", "tf32(a[i,k]) * b[j,k]"}) {
    const Workload workload = CanonicalWorkload(
        absl::StrCat("workload g(a: f32[136,96], b: f32[88,96]) -> (s: f32[136,88]) { s[i,j] = sum[k:96](",
                     product, ") }"));
    const std::vector<Sketch> sketches = GenerateSketches(workload, Sm80());
    ASSERT_FALSE(sketches.empty());
    EXPECT_THAT(sketches[0].name, testing::HasSubstr("simt"));
  }
}

// Tensor cores multiply 8-bit floats from sm_89 on.
TEST(MultistageRule, EightBitFloatsOnAmpereAreForOrdinaryCores) {
  CheckPoints(R"(workload g(a: f8e4m3[72,96], b: f8e4m3[40,96]) -> (s: f32[72,40]) {
  s[i,j] = sum[k:96](f32(a[i,k]) * f32(b[j,k])) })",
              "simt", Sm80());
}

}  // namespace
}  // namespace mycc
