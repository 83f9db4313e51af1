// The rules for GPUs on every kind of workload, as emitted code: points of each space run on the host and
// compute what the reference computes; the defaults compile by NVRTC and keep everything in registers.
#include <algorithm>
#include <map>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "codegen/passes/lower.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda/emitted.h"
#include "tests/schedule/testing.h"
#include "tests/tuner/gpu_cases.h"
#include "tuner/space/space.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

constexpr double kTolerance = 2e-2;  // of outputs in f16

absl::StatusOr<ScheduledCase> PointOf(const Workload& canonical, const Sketch& sketch, const Choice& choice) {
  const absl::StatusOr<Trace> trace = sketch.instantiate(choice);
  if (!trace.ok()) return trace.status();
  const absl::StatusOr<Schedule> schedule = Replay(canonical, TestGpu(), *trace);
  if (!schedule.ok()) return schedule.status();
  return ScheduledCase{PrintTrace(*trace), canonical, schedule->function()};
}

// Clusters are Hopper's alone.
absl::Status Compiles(const ScheduledCase& point) {
  const bool joined = absl::StrContains(point.name, "cluster_reduce(");
  return (joined ? EmitChecked(point, {Sm90a()}) : EmitChecked(point)).status();
}

class CudaRulesTest : public ::testing::TestWithParam<GpuCase> {};

TEST_P(CudaRulesTest, EmittedCodeComputesTheReference) {
  const Workload canonical = CanonicalWorkload(GetParam().workload);
  std::mt19937 random(7);
  std::vector<ScheduledCase> points;
  for (const Sketch& sketch : GenerateSketches(canonical, TestGpu())) {
    int wanted = 1 + RandomSeeds(2);
    for (int round = 0; round < 50 * wanted && wanted > 0; ++round) {
      Choice choice = sketch.default_choice;
      for (size_t d = 0; round > 0 && d < choice.size(); ++d)
        choice[d] = static_cast<int>(random() % sketch.space.decisions[d].choices.size());
      if (!sketch.space.Legal(choice)) continue;
      absl::StatusOr<ScheduledCase> point = PointOf(canonical, sketch, choice);
      ASSERT_TRUE(point.ok()) << sketch.name << ": " << point.status();
      if (round == 0) {
        const absl::Status compiled = Compiles(*point);
        EXPECT_TRUE(compiled.ok()) << compiled.message() << "\n"
                                   << point->name << PrintFunction(point->function);
      }
      points.push_back(*std::move(point));
      --wanted;
    }
  }
  const std::vector<absl::Status> results = CheckOnHost(points, kTolerance);
  for (size_t i = 0; i < points.size(); ++i) {
    EXPECT_TRUE(results[i].ok()) << results[i].message() << "\n"
                                 << points[i].name << PrintFunction(points[i].function);
  }
}

// Rows of several blocks, whose threads send each other what they reduce.
TEST(RowRuleTest, ClustersHoldRows) {
  std::vector<ScheduledCase> points;
  for (const GpuCase& gpu_case : kClusterCases) {
    const Workload canonical = CanonicalWorkload(gpu_case.workload);
    const Sketch sketch = GenerateSketches(canonical, TestGpu()).front();
    std::mt19937 random(3);
    int wanted = 1 + RandomSeeds(1);
    for (int round = 0; round < 100000 && wanted > 0; ++round) {
      Choice choice;
      for (const Decision& decision : sketch.space.decisions)
        choice.push_back(static_cast<int>(random() % decision.choices.size()));
      if (!sketch.space.Legal(choice)) continue;
      absl::StatusOr<ScheduledCase> point = PointOf(canonical, sketch, choice);
      ASSERT_TRUE(point.ok()) << point.status();
      if (!absl::StrContains(point->name, "cluster_reduce(")) continue;
      const absl::Status compiled = Compiles(*point);
      EXPECT_TRUE(compiled.ok()) << compiled.message() << "\n" << point->name;
      points.push_back(*std::move(point));
      --wanted;
    }
    EXPECT_EQ(wanted, 0) << gpu_case.name;
  }
  const std::vector<absl::Status> results = CheckOnHost(points, kTolerance);
  for (size_t i = 0; i < points.size(); ++i) {
    EXPECT_TRUE(results[i].ok()) << results[i].message() << "\n" << points[i].name;
  }
}

// Rows that no block holds: statistics of a softmax in one pass are offered after the sketches
// with a pass for each, and their defaults compile.
TEST(RowRuleTest, LongRowsMayBeOnePassOfTuples) {
  constexpr char kRows[] = R"(workload w(x: f32[$0,$1]) -> (y: f32[$0,$1]) {
  m[i]: f32[$0] = max[j:$1](x[i,j])
  e[i,j]: f32[$0,$1] = exp(x[i,j] - m[i])
  s[i]: f32[$0] = sum[j:$1](e[i,j])
  y[i,j] = e[i,j] / s[i] })";
  for (const char* text : {kRows}) {
    for (const int64_t rows : {4, 300}) {
      const Workload canonical = CanonicalWorkload(absl::Substitute(text, rows, 1000000));
      int joint = 0;
      for (const Sketch& sketch : GenerateSketches(canonical, TestGpu())) {
        if (!absl::StrContains(sketch.name, "_joint")) {
          EXPECT_EQ(joint, 0) << sketch.name << " comes after the new ones";
          continue;
        }
        ++joint;
        const absl::StatusOr<ScheduledCase> point = PointOf(canonical, sketch, sketch.default_choice);
        ASSERT_TRUE(point.ok()) << sketch.name << point.status();
        EXPECT_TRUE(absl::StrContains(point->name, "reduce_together(")) << point->name;
        const absl::Status compiled = Compiles(*point);
        EXPECT_TRUE(compiled.ok()) << point->name << compiled.message();
      }
      EXPECT_GE(joint, 1) << canonical.name << " of " << rows;
    }
  }
}

// Such rows reduce nothing: all stages are one, whose vectors run across rows.
TEST(RowRuleTest, ASoftmaxOverRowsOfOneElementIsElementwise) {
  const Workload canonical = CanonicalWorkload(
      "workload g(x: f16[1001,1]) -> (y: f16[1001,1]) {"
      " m[i]: f32[1001] = max[j:1](f32(x[i,j]))\n e[i,j]: f32[1001,1] = exp(f32(x[i,j]) - m[i])\n"
      " s[i]: f32[1001] = sum[j:1](e[i,j])\n y[i,j] = f16(e[i,j] / s[i]) }");
  const Sketch sketch = GenerateSketches(canonical, TestGpu()).front();
  EXPECT_EQ(sketch.name, "elementwise");
  const absl::StatusOr<ScheduledCase> point = PointOf(canonical, sketch, sketch.default_choice);
  ASSERT_TRUE(point.ok()) << point.status();
  const absl::StatusOr<LoweredFunction> lowered = Lower(point->function, TestGpu());
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_THAT(PrintLowered(*lowered), HasSubstr("8 at a time"));
  const absl::Status result = CheckOnHost({*point}, kTolerance).front();
  EXPECT_TRUE(result.ok()) << result.message();
}

// Tiles that are turned over on their way to shared memory run ahead through registers.
TEST(SimtRuleTest, CopiesAheadThroughRegisters) {
  const Workload canonical = CanonicalWorkload(
      "workload g(a: f32[128,64], b: f32[256,64]) -> (c: f32[128,256]) {"
      " c[i,j] = sum[k:64](a[i,k] * b[j,k]) }");
  const Sketch sketch = GenerateSketches(canonical, TestGpu()).front();
  ASSERT_EQ(sketch.name, "simt");
  std::mt19937 random(5);
  std::vector<ScheduledCase> points;
  for (int round = 0; round < 10000 && points.size() < 4; ++round) {
    Choice choice;
    for (const Decision& decision : sketch.space.decisions)
      choice.push_back(static_cast<int>(random() % decision.choices.size()));
    if (!sketch.space.Legal(choice) || sketch.space.Value(choice, "t2.stages") == 1) continue;
    absl::StatusOr<ScheduledCase> point = PointOf(canonical, sketch, choice);
    ASSERT_TRUE(point.ok()) << point.status();
    points.push_back(*std::move(point));
  }
  ASSERT_EQ(points.size(), 4u);
  const std::vector<absl::Status> results = CheckOnHost(points, 1e-4);
  for (size_t i = 0; i < points.size(); ++i) EXPECT_TRUE(results[i].ok()) << results[i] << points[i].name;
}

// Threads with many sums load operands a term ahead, also beyond the last step, and copies through registers
// a step ahead.
TEST(SimtRuleTest, OperandsOfManySumsAreLoadedATermAhead) {
  struct Case {
    const char* workload;
    int64_t rows, stages, runs;
    bool is_ahead;
  };
  const char* const turned =
      "workload g(a: f32[128,32], b: f32[128,32]) -> (c: f32[128,128]) { c[i,j] = sum[k:32](a[i,k] * b[j,k]) "
      "}";
  const char* const odd =
      "workload g(a: f32[130,28], b: f32[28,99]) -> (c: f32[130,99]) { c[i,j] = sum[k:28](a[i,k] * b[k,j]) }";
  const char* const epilogue =
      "workload g(a: f32[30,93], b: f32[128,30], d: f32[128]) -> (c: f32[93,128]) {"
      " t[i,j]: f32[93,128] = sum[k:30](a[k,i] * b[j,k])\n c[i,j] = max(t[i,j] + d[j], 0.0) }";
  const char* const batch =
      "workload g(a: f32[2,70,128], b: f32[2,65,128]) -> (c: f32[2,70,65]) {"
      " c[z,i,j] = sum[k:128](a[z,i,k] * b[z,j,k]) }";
  std::vector<ScheduledCase> points;
  for (const Case& wanted :
       {Case{turned, 16, 2, 1, true}, Case{turned, 8, 3, 1, true},
        Case{turned, 16, 4, 1, false},  // as many stages as steps
        Case{odd, 16, 2, 1, true}, Case{odd, 8, 3, 1, true}, Case{epilogue, 16, 3, 1, true},
        Case{epilogue, 8, 2, 1, true}, Case{batch, 16, 4, 2, true}}) {
    const Workload canonical = CanonicalWorkload(wanted.workload);
    const Sketch sketch = GenerateSketches(canonical, TestGpu()).front();
    ASSERT_EQ(sketch.name, "simt");
    const std::map<std::string, int64_t> values = {
        {"tile_m", 128}, {"tile_n", 128}, {"thread_m", wanted.rows}, {"thread_n", 128 / wanted.rows},
        {"tile_k", 8},   {"resident", 0}, {"stages", wanted.stages}, {"runs", wanted.runs}};
    Choice choice = sketch.default_choice;
    for (size_t d = 0; d < choice.size(); ++d) {
      const Decision& decision = sketch.space.decisions[d];
      const auto value = values.find(decision.name.substr(decision.name.find('.') + 1));
      if (value == values.end()) continue;
      const auto at = std::ranges::find(decision.choices, value->second);
      ASSERT_NE(at, decision.choices.end()) << decision.name << " of " << wanted.workload;
      choice[d] = static_cast<int>(at - decision.choices.begin());
    }
    ASSERT_TRUE(sketch.space.Legal(choice)) << wanted.workload;
    absl::StatusOr<ScheduledCase> point = PointOf(canonical, sketch, choice);
    ASSERT_TRUE(point.ok()) << point.status();
    const absl::StatusOr<LoweredFunction> lowered = Lower(point->function, TestGpu());
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_EQ(absl::StrContains(PrintLowered(*lowered), ".operands"), wanted.is_ahead) << point->name;
    const absl::Status compiled = EmitChecked(*point, {Sm90a()}).status();
    EXPECT_TRUE(compiled.ok()) << compiled << point->name;
    points.push_back(*std::move(point));
  }
  const std::vector<absl::Status> results = CheckOnHost(points, 1e-4);
  for (size_t i = 0; i < points.size(); ++i) EXPECT_TRUE(results[i].ok()) << results[i] << points[i].name;
}

INSTANTIATE_TEST_SUITE_P(All, CudaRulesTest, ::testing::ValuesIn(kGpuCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace mycc
