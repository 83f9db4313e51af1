// Random schedules: whatever steps the primitives accept, in any order; and workloads to schedule so.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "codegen/schedule/schedule.h"

namespace mycc {

// Tries about `attempts` random steps on the naive nest. A refusal is one of the answers that are expected,
// when it names its step and is a FailedPrecondition; an Internal error says which step was refused in
// another way or left IR that breaks its own rules.
absl::StatusOr<Schedule> RandomSchedule(const Workload& canonical, const Target& target, uint64_t seed,
                                        int attempts);

// Workloads of several classes: what every back end makes of their schedules is tested.
inline constexpr char kBiasedGemm[] =
    R"(workload w(a: f32[13,10], b: const f32[10,19], bias: f32[19]) -> (y: f32[13,19]) {
  c[i,j]: f32[13,19] = sum[k:10](a[i,k] * b[k,j])
  y[i,j] = max(c[i,j] + bias[j], 0.0)
})";
inline constexpr char kPaddedConv[] =
    R"(workload w(x: f32[1,3,9,8], w: const f32[10,3,3,3]) -> (y: f32[1,10,9,8]) {
  p[n,c,i,j]: f32[1,3,11,10] = select(1 <= i && i < 10 && 1 <= j && j < 9, x[n,c,i-1,j-1], 0.0)
  y[n,k,i,j] = sum[c:3, r:3, s:3](p[n,c,i+r,j+s] * w[k,c,r,s])
})";
inline constexpr char kRowSoftmax[] =
    R"(workload w(x: f32[5,37]) -> (y: f32[5,37]) {
  m[i]: f32[5] = max[j:37](x[i,j])
  e[i,j]: f32[5,37] = exp(x[i,j] - m[i])
  s[i]: f32[5] = sum[j:37](e[i,j])
  y[i,j] = e[i,j] / s[i]
})";
inline constexpr char kArgmaxAndMin[] =
    R"(workload w(x: f32[11,13]) -> (y: i32[11], z: f32[13]) {
  y[i] = argmax[j:13](x[i,j])
  z[j] = min[i:11](x[i,j])
})";

}  // namespace mycc
