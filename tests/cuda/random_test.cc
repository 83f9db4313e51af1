// Emitted code on the host against the reference: random workloads over every type and operation without a
// schedule, and random schedules of blocks, threads, vectors and shared memory.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "codegen/driver/reference_kernel.h"
#include "codegen/ir/verify.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/print.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda/emitted.h"
#include "tests/schedule/random_schedule.h"
#include "tests/schedule/testing.h"
#include "tests/workload/random_workload.h"

namespace mycc {
namespace {

// Schedules change the order of sums, which then differ by roundings of the type that they are in.
constexpr double kF32Sums = 1e-5, kF16Sums = 4e-3, kBF16Sums = 1e-2;

// A schedule may ask for what a GPU has not, never for wrong code: how many of the cases were computed on the
// host. Refusals are of the kinds that are listed here.
int Computed(const std::vector<ScheduledCase>& cases, double tolerance) {
  using ::testing::AnyOf;
  using ::testing::HasSubstr;
  const std::vector<absl::Status> results = CheckOnHost(cases, tolerance);
  int computed = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    computed += results[i].ok();
    if (results[i].ok()) continue;
    EXPECT_TRUE(absl::IsFailedPrecondition(results[i])) << cases[i].name << "\n" << results[i].message();
    EXPECT_THAT(std::string(results[i].message()),
                AnyOf(HasSubstr("block loops are the outermost"), HasSubstr("shared) shares it"),
                      HasSubstr("which are not whole warps")))
        << cases[i].name;
  }
  return computed;
}

TEST(RandomCudaTest, NaiveWorkloads) {
  std::vector<ScheduledCase> exact, rounded;  // in f32 and wider, or in 16 bits too
  for (int seed = 0; seed < RandomSeeds(40); ++seed) {
    const Workload canonical = Canonicalize(RandomWorkload(seed));
    const std::string text = PrintWorkload(canonical), name = absl::StrCat("seed ", seed, "\n", text);
    std::vector<ScheduledCase>& cases = absl::StrContains(text, "f16") ? rounded : exact;
    cases.push_back({name, canonical, BuildNaive(canonical)});
    cases.push_back({name, canonical, ReferenceFunction(canonical)});
  }
  EXPECT_GE(exact.size(), rounded.size() / 4);
  EXPECT_EQ(Computed(exact, kF32Sums), static_cast<int>(exact.size()));
  EXPECT_EQ(Computed(rounded, kBF16Sums), static_cast<int>(rounded.size()));
}

struct ScheduledAtRandom {
  const char* text;
  double tolerance;
};
const ScheduledAtRandom kWorkloads[] = {
    {kBiasedGemm, kF32Sums},
    {kPaddedConv, kF32Sums},
    {kRowSoftmax, kF32Sums},
    {R"(workload w(x: bf16[16,40], y: f16[40,16]) -> (z: bf16[16,40], s: f16[40]) {
  z[i,j] = x[i,j] * bf16(y[j,i]) + x[i,39-j]
  s[j] = sum[i:16](y[j,i])
})",
     kF16Sums},
    {kArgmaxAndMin, kF32Sums},
    {R"(workload w(x: i16[6,19], u: u16[6,19], v: u32[6,19], w: u64[6,19]) -> (a: i16[19], c: u32[6], d: u64[19,6], e: i32[6], f: f32[6,19]) {
  a[j] = sum[i:6](x[i,j] * i16(u[i,j]))
  c[i] = max[j:19](v[i,j] - 8)
  d[j,i] = select(w[i,j] - 8 < w[5-i,j], (w[i,j] - 8) // 3, u64(u[i,j]) % 7)
  e[i] = argmax[j:19](w[i,j] - 8)
  f[i,j] = f32(w[i,j] - 8) + f32(v[i,j])
})",
     kF32Sums},
    {R"(workload w(x: f8e4m3[16,40], y: const f8e5m2[40,16]) -> (z: f8e4m3[16,40], m: f8e5m2[40], s: f32[16]) {
  z[i,j] = x[i,j] * f8e4m3(y[j,i]) + x[i,39-j]
  m[j] = max[i:16](y[j,i])
  s[i] = sum[j:40](f32(x[i,j]) * f32(y[j,i]))
})",
     kF32Sums},
};

// At most two fifths of a workload's schedules are refused, and a fifth of all.
TEST(RandomCudaTest, Schedules) {
  int scheduled = 0, computed = 0;
  for (size_t w = 0; w < std::size(kWorkloads); ++w) {
    const Workload canonical = CanonicalWorkload(kWorkloads[w].text);
    std::vector<ScheduledCase> cases;
    for (int seed = 0; seed < RandomSeeds(20); ++seed) {
      const absl::StatusOr<Schedule> schedule =
          RandomSchedule(canonical, Sm90a(), uint64_t{17} * seed + w, 6 + seed % 24);
      ASSERT_TRUE(schedule.ok()) << "workload " << w << " seed " << seed << ": " << schedule.status();
      cases.push_back({absl::StrCat("seed ", seed, "\n", PrintTrace(schedule->trace())), canonical,
                       schedule->function()});
    }
    const int of_these = Computed(cases, kWorkloads[w].tolerance);
    EXPECT_GE(of_these * 5, static_cast<int>(cases.size()) * 3) << kWorkloads[w].text;
    scheduled += static_cast<int>(cases.size());
    computed += of_these;
  }
  EXPECT_GE(computed * 5, scheduled * 4) << computed << " of " << scheduled;
}

}  // namespace
}  // namespace mycc
