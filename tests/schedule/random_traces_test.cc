// Random traces: every step is either refused with a clean status, or leaves a schedule that verifies and
// means what the workload means.
#include "gtest/gtest.h"
#include "tests/schedule/random_schedule.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

constexpr const char* kWorkloads[] = {
    R"(workload g(a: f32[7,6], b: const f32[6,10], bias: f32[10]) -> (y: f32[7,10]) {
      c[i,j]: f32[7,10] = sum[k:6](a[i,k] * b[k,j])
      y[i,j] = max(c[i,j] + bias[j], 0.0) })",
    R"(workload conv(x: f32[1,5,5,3], w: const f32[4,3,3,3]) -> (y: f32[1,5,5,4]) {
      p[n,i,j,c]: f32[1,7,7,3] = select(1 <= i && i < 6 && 1 <= j && j < 6, x[n,i-1,j-1,c], 0.0)
      y[n,i,j,k] = sum[c:3, r:3, s:3](p[n,i+r,j+s,c] * w[k,c,r,s]) })",
    R"(workload softmax(x: f32[3,11]) -> (y: f32[3,11]) {
      m[i]: f32[3] = max[j:11](x[i,j])
      e[i,j]: f32[3,11] = exp(x[i,j] - m[i])
      s[i]: f32[3] = sum[j:11](e[i,j])
      y[i,j] = e[i,j] / s[i] })",
    R"(workload best(x: f32[4,9]) -> (y: i32[4], z: f32[4,9]) {
      y[i] = argmax[j:9](x[i,j])
      z[i,j] = x[i,j] * f32(y[i]) })",
};

TEST(RandomTracesTest, StepsAreRefusedOrKeepTheMeaning) {
  size_t applied = 0;
  const int seeds = RandomSeeds(300);
  for (int seed = 0; seed < seeds; ++seed) {
    const Workload workload = CanonicalWorkload(kWorkloads[seed % std::size(kWorkloads)]);
    const absl::StatusOr<Schedule> schedule =
        RandomSchedule(workload, TestTarget(), static_cast<uint64_t>(seed), 4 + seed % 27);
    if (!schedule.ok()) {
      ADD_FAILURE() << "seed " << seed << ": " << schedule.status();
      continue;
    }
    applied += schedule->trace().steps.size();
    const absl::Status same = CheckFunction(workload, schedule->function());
    EXPECT_TRUE(same.ok()) << "seed " << seed << ": " << same << "\n"
                           << PrintTrace(schedule->trace()) << PrintFunction(schedule->function());
  }
  EXPECT_GT(applied, static_cast<size_t>(seeds));
}

}  // namespace
}  // namespace mycc
