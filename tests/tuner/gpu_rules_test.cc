// Every rule for GPUs on every kind of workload: the default and random points of the space replay, verify,
// and mean what the workload means.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "gtest/gtest.h"
#include "tests/schedule/testing.h"
#include "tests/tuner/gpu_cases.h"
#include "tests/tuner/lowered_point.h"
#include "tests/tuner/points.h"

namespace mycc {
namespace {

// The tolerance is of outputs in f16, where there are any.
double Tolerance(const Workload& workload) {
  bool half = false;
  for (const Buffer& output : workload.outputs) half |= DTypeBytes(output->dtype) == 2;
  return half ? 2e-2 : 1e-5;
}

class GpuRulesTest : public ::testing::TestWithParam<GpuCase> {};

TEST_P(GpuRulesTest, PointsMeanWhatTheWorkloadMeans) {
  const Workload workload = CanonicalWorkload(GetParam().workload);
  const std::vector<Sketch> sketches = GenerateSketches(workload, TestGpu());
  const Sketch& sketch = sketches.front();
  ASSERT_EQ(sketch.name, GetParam().sketch);
  EXPECT_GE(CheckPoints(workload, sketch, TestGpu(), Tolerance(workload)), sketch.space.size() >= 12 ? 8 : 1);
}

INSTANTIATE_TEST_SUITE_P(All, GpuRulesTest, ::testing::ValuesIn(kGpuCases),
                         [](const auto& info) { return std::string(info.param.name); });

// The decision whether clusters hold rows; empty where there is none.
std::string ClusterDecision(const Sketch& sketch) {
  for (const Decision& decision : sketch.space.decisions) {
    if (absl::EndsWith(decision.name, ".cluster")) return decision.name;
  }
  return "";
}

class ClusterRulesTest : public ::testing::TestWithParam<GpuCase> {};

TEST_P(ClusterRulesTest, PointsMeanWhatTheWorkloadMeans) {
  const Workload workload = CanonicalWorkload(GetParam().workload);
  const Sketch sketch = GenerateSketches(workload, TestGpu()).front();
  ASSERT_EQ(sketch.name, GetParam().sketch);
  ASSERT_NE(ClusterDecision(sketch), "");
  EXPECT_EQ(CheckPoints(workload, sketch, TestGpu(), Tolerance(workload), 4, ClusterDecision(sketch)), 4);
}

TEST_P(ClusterRulesTest, AreOfHopper) {
  const Workload workload = CanonicalWorkload(GetParam().workload);
  for (const Sketch& sketch : GenerateSketches(workload, *ParseTarget("a100")))
    EXPECT_EQ(ClusterDecision(sketch), "");
}

INSTANTIATE_TEST_SUITE_P(All, ClusterRulesTest, ::testing::ValuesIn(kClusterCases),
                         [](const auto& info) { return std::string(info.param.name); });

// Which rows clusters hold unless told otherwise.
TEST(ClusterRules, Defaults) {
  const auto defaults = [](int64_t rows, int64_t length, const char* type) {
    const std::string text = absl::Substitute(
        "workload s(x: $2[$0,$1]) -> (y: $2[$0,$1]) {\n m[i]: f32[$0] = max[j:$1](f32(x[i,j]))\n"
        " e[i,j]: f32[$0,$1] = exp(f32(x[i,j]) - m[i])\n s[i]: f32[$0] = sum[j:$1](e[i,j])\n"
        " y[i,j] = $2(e[i,j] / s[i]) }",
        rows, length, type);
    std::vector<std::string> sketches;
    for (const Sketch& sketch : GenerateSketches(CanonicalWorkload(text), TestGpu())) {
      const std::string cluster = ClusterDecision(sketch);
      sketches.push_back(sketch.name);
      if (cluster.empty()) continue;
      absl::StrAppend(&sketches.back(), " by ", sketch.space.Value(sketch.default_choice, cluster));
    }
    return absl::StrJoin(sketches, ", ");
  };
  EXPECT_EQ(defaults(8192, 8192, "f16"), "row");
  EXPECT_EQ(defaults(8192, 16384, "f16"), "row by 1");
  EXPECT_EQ(defaults(8192, 131072, "f16"), "row by 8");
  EXPECT_EQ(defaults(100, 65536, "f16"), "row by 4");
  EXPECT_EQ(defaults(31, 91773, "f16"), "row by 4, row_runs");
  EXPECT_EQ(defaults(16, 131072, "f16"), "row by 8, row_runs");
  EXPECT_EQ(defaults(1, 20000, "f32"), "row_runs, row by 2");
  EXPECT_EQ(defaults(4, 1000000, "f32"), "row_runs, row_runs_joint");
}

// One row or few, whose threads are less than a warp: the default and points at random lower.
TEST(ColumnRules, ShortSumsOfFewRowsLower) {
  for (const int64_t rows : {1, 2, 3, 5}) {
    for (const int64_t length : {2, 3, 7, 10, 30, 64, 200}) {
      const std::string text = absl::Substitute(
          "workload d(a: f32[$0,$1], b: f32[1,$1]) -> (c: f32[$0,1]) { c[i,j] = sum[k:$1](a[i,k] * b[j,k]) }",
          rows, length);
      ASSERT_EQ(GenerateSketches(CanonicalWorkload(text), TestGpu()).front().name, "row") << text;
      CheckLowered(text, TestGpu(), "row", 6, "", "", 1e-5);
    }
  }
}

// A sum of a million products is no work for one block.
TEST(ColumnRules, DotProductsUseManyBlocks) {
  const Workload dot = CanonicalWorkload(
      "workload d(a: f32[1,1000000], b: f32[1,1000000]) -> (c: f32[1,1]) {"
      " c[i,j] = sum[k:1000000](a[i,k] * b[j,k]) }");
  EXPECT_EQ(GenerateSketches(dot, TestGpu()).front().name, "row_runs");
}

// Products of f32 whose tiles fill a part of the last turn on 132 SMs are cut into runs.
TEST(SimtStarts, RunsFillTheLastTurn) {
  const auto starts = [](int64_t m, int64_t n, int64_t k) {
    const std::string text = absl::Substitute(
        "workload g(a: f32[$0,$2], b: f32[$1,$2]) -> (c: f32[$0,$1]) { c[i,j] = sum[k:$2](a[i,k] * b[j,k]) }",
        m, n, k);
    const Sketch sketch = GenerateSketches(CanonicalWorkload(text), TestGpu()).front();
    std::vector<std::string> result;
    for (const Choice& start : sketch.starts) {
      const auto value = [&](const char* name) {
        return sketch.space.Value(start, absl::StrCat("t2.", name));
      };
      result.push_back(absl::StrCat(value("tile_m"), "x", value("tile_n"), " by ", value("runs")));
    }
    return absl::StrJoin(result, ", ");
  };
  EXPECT_EQ(starts(1853, 3547, 2293), "128x128 by 1, 128x128 by 1, 64x128 by 2, 128x64 by 2");
  EXPECT_EQ(starts(941, 3212, 2160), "128x128 by 1, 128x128 by 1, 64x128 by 1, 128x64 by 3");
  EXPECT_EQ(starts(2570, 632, 1274), "128x128 by 1, 128x128 by 1, 64x128 by 3, 128x64 by 3");
  EXPECT_EQ(starts(200, 256, 2100), "128x128 by 4, 128x128 by 4, 64x128 by 12, 128x64 by 12");
  EXPECT_EQ(starts(30, 30, 2000), "");
}

}  // namespace
}  // namespace mycc
