// Random schedules of workloads of every class: compiled, they compute what the reference computes.
#include "gtest/gtest.h"
#include "tests/llvm/compiled.h"
#include "tests/schedule/random_schedule.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

const char* const kWorkloads[] = {
    kBiasedGemm,
    R"(workload w(a: f32[3,7,12], b: f32[3,9,12]) -> (c: f32[3,7,9]) {
  c[n,i,j] = sum[k:12](a[n,i,k] * b[n,j,k])
})",
    kPaddedConv,
    kRowSoftmax,
    kArgmaxAndMin,
    R"(workload w(x: i8[6,20], y: i8[6,20]) -> (s: i32[6], d: i8[20,6]) {
  s[i] = sum[j:20](i32(x[i,j]) * i32(y[i,j]))
  d[j,i] = x[i,j] // y[i,j]
})",
    R"(workload w(t: bf16[20,12], i: i32[7]) -> (y: f32[7,12]) {
  y[a,b] = f32(t[clamp(i[a], 0, 19), b]) * 2.0
})",
    // Stride, dilation, groups; a negative offset.
    R"(workload w(x: f64[1,6,9,9], w: const f64[8,3,2,2]) -> (y: f64[1,8,4,4]) {
  y[n,k,i,j] = sum[c:3, r:2, s:2](x[n,k // 4 * 3 + c,i*2+r*2,j*2+s*2] * w[k,c,r,s])
})",
    R"(workload w(x: f32[23], w: const f32[5]) -> (y: f32[23]) {
  y[i] = sum[r:5](select(0 <= i - r, x[i-r] * w[r], 0.0))
})",
    // NaN among the values, and values that are equal.
    R"(workload w(x: f32[9,35]) -> (a: i32[9], b: i32[35], c: f32[9]) {
  v[i,j]: f32[9,35] = select((i * 35 + j) % 41 == 7, nan, floor(x[i,j] * 2.0))
  a[i] = argmax[j:35](v[i,j])
  b[j] = argmin[i:9](v[i,j])
  c[i] = max[j:35](v[i,j])
})",
    // Floored division and remainder of negative numbers and by zero; sums and products that wrap.
    R"(workload w(x: i32[7,21], y: i32[7,21]) -> (q: i32[7,21], r: i32[7,21], s: i32[7], p: i32[21]) {
  q[i,j] = (x[i,j] - 3) // (y[i,j] % 5 - 2)
  r[i,j] = (x[i,j] - 3) % (y[i,j] % 5 - 2)
  s[i] = sum[j:21](x[i,j] * 715827883)
  p[j] = prod[i:7](x[i,j] + 65537)
})",
    R"(workload w(x: i64[6,19], u: u8[6,19], b: bool[6,19]) -> (a: i64[19], c: u8[6], d: bool[19,6], e: bf16[19,6]) {
  a[j] = sum[i:6](x[i,j] * 3037000500)
  c[i] = sum[j:19](u[i,j])
  d[j,i] = b[i,j] && u[i,j] < u8(100)
  e[j,i] = select(b[i,j], bf16(u[i,j]), bf16(x[i,j] % 100)) * bf16(0.5)
})",
    R"(workload w(x: i8[130], y: u8[130]) -> (z: i8[130], v: u8[130]) {
  z[i] = max(x[i] * x[129-i], i8(y[i]))
  v[i] = y[i] // u8(3) - y[129-i] % u8(7)
})",
    R"(workload w(x: i16[6,19], u: u16[6,19], v: u32[6,19], w: u64[6,19]) -> (a: i16[19], c: u32[6], d: u64[19,6], e: i32[6], f: f32[6,19]) {
  a[j] = sum[i:6](x[i,j] * i16(u[i,j]))
  c[i] = max[j:19](v[i,j] - 8)
  d[j,i] = select(w[i,j] - 8 < w[5-i,j], (w[i,j] - 8) // 3, u64(u[i,j]) % 7)
  e[i] = argmax[j:19](w[i,j] - 8)
  f[i,j] = f32(w[i,j] - 8) + f32(v[i,j])
})",
    R"(workload w(x: f8e4m3[16,40], y: const f8e5m2[40,16]) -> (z: f8e4m3[16,40], m: f8e5m2[40], s: f32[16]) {
  z[i,j] = x[i,j] * f8e4m3(y[j,i]) + x[i,39-j]
  m[j] = max[i:16](y[j,i])
  s[i] = sum[j:40](f32(x[i,j]) * f32(y[j,i]))
})",
};

TEST(RandomSchedulesTest, ComputeWhatTheReferenceComputes) {
  const std::vector<Target> targets = RunnableTargets();
  int compiled = 0, refused = 0;
  for (size_t w = 0; w < std::size(kWorkloads); ++w) {
    const Workload canonical = CanonicalWorkload(kWorkloads[w]);
    for (int seed = 0; seed < RandomSeeds(8); ++seed) {
      const Target& target = targets[(w + seed) % targets.size()];
      const absl::StatusOr<Schedule> schedule =
          RandomSchedule(canonical, target, seed * 31 + w, 4 + seed % 20);
      if (!schedule.ok()) {
        ADD_FAILURE() << "workload " << w << " seed " << seed << ": " << schedule.status();
        continue;
      }
      const absl::Status status = CheckCompiledFunction(canonical, schedule->function(), target, 1e-4);
      // A schedule may ask for what cannot be lowered, never for wrong code.
      (absl::IsFailedPrecondition(status) ? refused : compiled)++;
      EXPECT_TRUE(status.ok() || absl::IsFailedPrecondition(status))
          << "workload " << w << " seed " << seed << "\n"
          << PrintTrace(schedule->trace()) << status.message();
    }
  }
  EXPECT_GT(compiled, refused * 10) << compiled << " compiled, " << refused << " refused";
}

}  // namespace
}  // namespace mycc
