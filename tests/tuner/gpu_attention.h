// Attention as the GPU's rules for it are tested: texts, and a check of the points that they offer. Points
// are lowered to roles, rings and fragments, and the machine's interpreter computes what the stages say, and
// finds no races.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "codegen/passes/lower.h"
#include "gtest/gtest.h"
#include "tests/schedule/testing.h"
#include "tests/tuner/lowered_point.h"
#include "tuner/space/space.h"

namespace mycc {

// Few multiprocessors, so that persistent blocks have several tiles.
inline Target Hopper() {
  return *ParseTarget("v1 cuda arch=sm_90a model=\"NVIDIA H200\" sms=2 smem=232448 l2=60M");
}
inline Target Ampere() {
  return *ParseTarget("v1 cuda arch=sm_80 model=\"NVIDIA A100\" sms=108 smem=166912 l2=40M");
}

// Attention of 2 heads in f16 with the same keys, 200 rows each.
inline std::string Attention(int keys, int depth, const std::string& mask) {
  const std::string text =
      R"(workload attention(q: f16[2,200,$1], k: f16[1,$0,$1], v: f16[1,$0,$1]) -> (o: f16[2,200,$1]) {
  s[h,i,j]: f32[2,200,$0] = sum[d:$1](f32(q[h,i,d]) * f32(k[h//2,j,d]))
  c[h,i,j]: f32[2,200,$0] = $2
  m[h,i]: f32[2,200] = max[j:$0](c[h,i,j])
  e[h,i,j]: f32[2,200,$0] = exp(c[h,i,j] - m[h,i])
  l[h,i]: f32[2,200] = sum[j:$0](e[h,i,j])
  t[h,i,d]: f32[2,200,$1] = sum[j:$0](f32(f16(e[h,i,j])) * f32(v[h//2,j,d]))
  o[h,i,d] = f16(t[h,i,d] / l[h,i])
})";
  const std::string scaled = "s[h,i,j] * 0.125";
  return absl::Substitute(text, keys, depth,
                          mask.empty() ? scaled : absl::StrCat("select(", mask, ", ", scaled, ", -inf)"));
}
inline constexpr char kNoMask[] = "", kCausal[] = "j <= i", kWindow[] = "j <= i && i < j + 70";

inline constexpr char kWarpgroups[] = "streamed_warp_specialized", kWarps[] = "streamed_multistage";

// The lowered default point of a rule with further steps.
inline absl::StatusOr<LoweredFunction> LoweredWith(const std::string& text, const std::string& steps) {
  const Workload workload = CanonicalWorkload(text);
  const Sketch sketch = GenerateSketches(workload, Hopper()).front();
  Choice choice = sketch.default_choice;
  for (size_t d = 0; d < choice.size(); ++d) {
    if (absl::EndsWith(sketch.space.decisions[d].name, ".persist")) choice[d] = 0;
  }
  Trace trace = sketch.instantiate(choice).value();
  const Trace more = ParseTrace(absl::StrCat("v1\n", steps)).value();
  trace.steps.insert(trace.steps.end(), more.steps.begin(), more.steps.end());
  const absl::StatusOr<Schedule> schedule = Replay(workload, Hopper(), trace);
  if (!schedule.ok()) return schedule.status();
  return Lower(schedule->function(), Hopper());
}

// Three queries of each of four heads with the same keys: few rows, in parts of the keys.
inline constexpr char kDecoding[] = R"(workload decoding(q: f16[2,4,3,64], $0) -> (o: f16[2,4,3,64]) {
  s[b,h,i,j]: f32[2,4,3,256] = sum[d:64](f32(q[b,h,i,d]) * f32(k[$1,d]))
  c[b,h,i,j]: f32[2,4,3,256] = $2
  m[b,h,i]: f32[2,4,3] = max[j:256](c[b,h,i,j])
  e[b,h,i,j]: f32[2,4,3,256] = exp(c[b,h,i,j] - m[b,h,i])
  l[b,h,i]: f32[2,4,3] = sum[j:256](e[b,h,i,j])
  t[b,h,i,d]: f32[2,4,3,64] = sum[j:256](f32(f16(e[b,h,i,j])) * f32(v[$1,d]))
  o[b,h,i,d] = f16(t[b,h,i,d] / l[b,h,i])
})";

inline std::string Decoding(const std::string& mask) {
  return absl::Substitute(
      kDecoding, "k: f16[2,1,256,64], v: f16[2,1,256,64]", "b,h//4,j",
      mask.empty() ? "s[b,h,i,j] * 0.125" : absl::StrCat("select(", mask, ", s[b,h,i,j] * 0.125, -inf)"));
}

}  // namespace mycc
