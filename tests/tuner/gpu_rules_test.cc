// Every rule for GPUs on every kind of workload: the default and random points of the space replay, verify,
// and mean what the workload means.
#include "gtest/gtest.h"
#include "tests/schedule/testing.h"
#include "tests/tuner/gpu_cases.h"
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

}  // namespace
}  // namespace mycc
