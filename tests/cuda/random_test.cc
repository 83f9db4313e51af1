// Emitted code on the host against the reference: random workloads over every type and operation without a
// schedule, and random schedules of blocks, threads, vectors and shared memory.
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "codegen/driver/reference_kernel.h"
#include "codegen/ir/verify.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/print.h"
#include "gtest/gtest.h"
#include "tests/cuda/emitted.h"
#include "tests/schedule/random_schedule.h"
#include "tests/schedule/testing.h"
#include "tests/workload/random_workload.h"

namespace mycc {
namespace {

// bf16 sums, whose order schedules change.
constexpr double kTolerance = 1e-2;

void Expect(const std::vector<ScheduledCase>& cases, int* computed, int* refused) {
  const std::vector<absl::Status> results = CheckOnHost(cases, kTolerance);
  for (size_t i = 0; i < cases.size(); ++i) {
    ++(absl::IsFailedPrecondition(results[i]) ? *refused : *computed);
    // A schedule may ask for what a GPU has not, never for wrong code.
    EXPECT_TRUE(results[i].ok() || absl::IsFailedPrecondition(results[i])) << cases[i].name << "\n"
                                                                           << results[i].message();
  }
}

TEST(RandomCudaTest, NaiveWorkloads) {
  std::vector<ScheduledCase> cases;
  for (int seed = 0; seed < RandomSeeds(40); ++seed) {
    const Workload canonical = Canonicalize(RandomWorkload(seed));
    cases.push_back(
        {absl::StrCat("seed ", seed, "\n", PrintWorkload(canonical)), canonical, BuildNaive(canonical)});
    cases.push_back({cases.back().name, canonical, ReferenceFunction(canonical)});
  }
  int computed = 0, refused = 0;
  Expect(cases, &computed, &refused);
  EXPECT_EQ(refused, 0);
}

const char* const kWorkloads[] = {
    kBiasedGemm,
    kPaddedConv,
    kRowSoftmax,
    R"(workload w(x: bf16[16,40], y: f16[40,16]) -> (z: bf16[16,40], s: f16[40]) {
  z[i,j] = x[i,j] * bf16(y[j,i]) + x[i,39-j]
  s[j] = sum[i:16](y[j,i])
})",
    kArgmaxAndMin,
    R"(workload w(x: f8e4m3[16,40], y: const f8e5m2[40,16]) -> (z: f8e4m3[16,40], m: f8e5m2[40], s: f32[16]) {
  z[i,j] = x[i,j] * f8e4m3(y[j,i]) + x[i,39-j]
  m[j] = max[i:16](y[j,i])
  s[i] = sum[j:40](f32(x[i,j]) * f32(y[j,i]))
})",
};

TEST(RandomCudaTest, Schedules) {
  int computed = 0, refused = 0;
  for (size_t w = 0; w < std::size(kWorkloads); ++w) {
    const Workload canonical = CanonicalWorkload(kWorkloads[w]);
    std::vector<ScheduledCase> cases;
    for (int seed = 0; seed < RandomSeeds(20); ++seed) {
      const absl::StatusOr<Schedule> schedule =
          RandomSchedule(canonical, Sm90a(), seed * 17 + w, 6 + seed % 24);
      ASSERT_TRUE(schedule.ok()) << "workload " << w << " seed " << seed << ": " << schedule.status();
      cases.push_back({absl::StrCat("seed ", seed, "\n", PrintTrace(schedule->trace())), canonical,
                       schedule->function()});
    }
    Expect(cases, &computed, &refused);
  }
  EXPECT_GT(computed, refused) << computed << " computed, " << refused << " refused";
}

}  // namespace
}  // namespace mycc
