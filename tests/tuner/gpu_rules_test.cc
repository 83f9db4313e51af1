// Every rule for GPUs on every kind of workload: the default and random points of the space replay, verify,
// and mean what the workload means.
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "codegen/ir/verify.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/schedule/testing.h"
#include "tests/tuner/gpu_cases.h"
#include "tuner/space/space.h"

namespace mycc {
namespace {

// The tolerance is of outputs in f16, where there are any.
double Tolerance(const Workload& workload) {
  bool half = false;
  for (const Buffer& output : workload.outputs) half |= DTypeBytes(output->dtype) == 2;
  return half ? 2e-2 : 1e-5;
}

void CheckPoint(const Workload& workload, const Sketch& sketch, const Choice& choice) {
  const absl::StatusOr<Trace> trace = sketch.instantiate(choice);
  ASSERT_TRUE(trace.ok()) << trace.status();
  const std::string text = PrintTrace(*trace);
  const absl::StatusOr<Trace> parsed = ParseTrace(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
  EXPECT_TRUE(*parsed == *trace) << text;
  const absl::StatusOr<Schedule> schedule = Replay(workload, TestGpu(), *trace);
  ASSERT_TRUE(schedule.ok()) << schedule.status() << "\n" << text;
  const absl::Status verified = VerifyFunction(schedule->function());
  ASSERT_TRUE(verified.ok()) << verified << "\n" << text << PrintFunction(schedule->function());
  const absl::Status status = CheckFunction(workload, schedule->function(), Tolerance(workload));
  ASSERT_TRUE(status.ok()) << status << "\n" << text << PrintFunction(schedule->function());
}

// The default and some random points; how many there were.
int CheckPoints(const Workload& workload, const Sketch& sketch, int points, uint32_t seed) {
  EXPECT_TRUE(sketch.space.Legal(sketch.default_choice)) << sketch.name;
  std::mt19937 rng(seed);
  int checked = 0;
  for (int round = 0; round < 100 * points && checked < points; ++round) {
    Choice choice = sketch.default_choice;
    for (size_t d = 0; round > 0 && d < choice.size(); ++d)
      choice[d] = static_cast<int>(rng() % sketch.space.decisions[d].choices.size());
    if (!sketch.space.Legal(choice)) continue;
    CheckPoint(workload, sketch, choice);
    if (::testing::Test::HasFatalFailure()) return checked;
    ++checked;
  }
  return checked;
}

class GpuRulesTest : public ::testing::TestWithParam<GpuCase> {};

TEST_P(GpuRulesTest, PointsMeanWhatTheWorkloadMeans) {
  const Workload workload = CanonicalWorkload(GetParam().workload);
  const std::vector<Sketch> sketches = GenerateSketches(workload, TestGpu());
  const Sketch& sketch = sketches.front();
  ASSERT_EQ(sketch.name, GetParam().sketch);
  EXPECT_GE(CheckPoints(workload, sketch, 12, 11), sketch.space.size() >= 12 ? 8 : 1);
}

INSTANTIATE_TEST_SUITE_P(All, GpuRulesTest, ::testing::ValuesIn(kGpuCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace mycc
