// The doctor's reading of a GPU, from a driver and an NVML that are the test's own.
#include "doctor/gpu_state.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/fake_cuda.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;

TEST(GpuStateTest, EveryValueHasItsPlace) {
  fake_cuda::Reset();
  const absl::StatusOr<GpuState> gpu = ReadGpuState(0);
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  EXPECT_EQ(gpu->model, "Fake GPU");
  EXPECT_EQ(gpu->driver, "580.95.05");
  EXPECT_GE(gpu->cuda, 12000);
  EXPECT_EQ(gpu->is_persistent, true);
  EXPECT_EQ(gpu->computes_for_one_alone, true);
  EXPECT_EQ(gpu->celsius, 47u);
  EXPECT_THAT(gpu->slowed_by, ElementsAre("power cap"));
  EXPECT_EQ(gpu->processes, 3u);
  EXPECT_EQ(gpu->sm_mhz, 1755u);
  EXPECT_EQ(gpu->most_sm_mhz, 1980u);
  EXPECT_EQ(gpu->uncorrected_errors, 5u);
  EXPECT_EQ(gpu->has_pending_page, true);
}

TEST(GpuStateTest, MissingGpuIsAnError) {
  fake_cuda::Reset();
  EXPECT_FALSE(ReadGpuState(9).ok());
}

}  // namespace
}  // namespace mycc
