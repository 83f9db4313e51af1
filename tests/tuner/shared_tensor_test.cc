// Products that read the same tensor, or one tensor twice, on a GPU: each has tiles and copies of its own,
// and lowered code computes what the stages say.
#include "absl/strings/match.h"
#include "codegen/target/target.h"
#include "gtest/gtest.h"
#include "tests/schedule/testing.h"
#include "tests/tuner/lowered_point.h"
#include "tuner/space/space.h"

namespace mycc {
namespace {

struct SharedTensor {
  const char *name, *text;
};

constexpr SharedTensor kCases[] = {
    {"TwoProductsOfFloats",
     R"(workload w(x: f32[40,48], a: f32[48,36], b: f32[48,36]) -> (y: f32[40,36], z: f32[40,36]) {
  y[i,j] = sum[d:48](x[i,d] * a[d,j])
  z[i,j] = sum[d:48](x[i,d] * b[d,j])
})"},
    {"TwoProductsOfHalves",
     R"(workload w(x: f16[40,48], a: f16[48,40], b: f16[48,40]) -> (y: f32[40,40], z: f32[40,40]) {
  y[i,j] = sum[d:48](f32(x[i,d]) * f32(a[d,j]))
  z[i,j] = sum[d:48](f32(x[i,d]) * f32(b[d,j]))
})"},
    // Copies of x with whole vectors.
    {"TwoProductsOfOddBytes",
     R"(workload w(x: i8[33,65], a: i8[65,31], b: i8[65,31]) -> (y: i32[33,31], z: i32[33,31]) {
  y[i,j] = sum[d:65](i32(x[i,d]) * i32(a[d,j]))
  z[i,j] = sum[d:65](i32(x[i,d]) * i32(b[d,j]))
})"},
    {"TwoConvolutions",
     R"(workload w(x: f32[1,8,9,9], k: f32[12,8,3,3], l: f32[12,8,3,3]) -> (y: f32[1,12,7,7], z: f32[1,12,7,7]) {
  y[n,f,h,w] = sum[c:8, r:3, s:3](x[n,c,h+r,w+s] * k[f,c,r,s])
  z[n,f,h,w] = sum[c:8, r:3, s:3](x[n,c,h+r,w+s] * l[f,c,r,s])
})"},
    {"TwoDepthwise",
     R"(workload w(x: f32[1,4,9,40], k: f32[4,3,3], l: f32[4,3,3]) -> (y: f32[1,4,7,38], z: f32[1,4,7,38]) {
  y[n,c,h,w] = sum[r:3, s:3](x[n,c,h+r,w+s] * k[c,r,s])
  z[n,c,h,w] = sum[r:3, s:3](x[n,c,h+r,w+s] * l[c,r,s])
})"},
    {"GramMatrixAndProduct", R"(workload w(x: f32[40,24]) -> (z: f32[40,24]) {
  y[i,j]: f32[40,40] = sum[d:24](x[i,d] * x[j,d])
  z[i,d] = sum[j:40](y[i,j] * x[j,d])
})"},
    {"GramMatrixFromTheOtherSide", R"(workload w(x: f32[40,24]) -> (y: f32[40,40]) {
  y[i,j] = sum[d:24](x[j,d] * x[i,d])
})"},
    {"GramMatrixOfAStage", R"(workload w(x: f32[20,24]) -> (y: f32[20,20]) {
  s[i,j]: f32[20,24] = x[i,j] * 0.5 + 1.0
  y[i,j] = sum[d:24](s[i,d] * s[j,d])
})"},
    {"TransposesOfOneTensor", R"(workload w(x: f32[96,40], z: f32[96,40]) -> (y: f32[40,96], w: f32[40,96]) {
  y[i,j] = x[j,i] * 2.0
  w[i,j] = x[j,i] + z[j,i]
})"},
    {"RowsAndTranspose", R"(workload w(x: f32[96,40]) -> (y: f32[96,40], t: f32[40,96]) {
  m[i]: f32[96] = max[k:40](x[i,k])
  e[i,j]: f32[96,40] = exp(x[i,j] - m[i])
  l[i]: f32[96] = sum[k:40](e[i,k])
  y[i,j] = e[i,j] / l[i]
  t[i,j] = x[j,i]
})"},
};

class SharedTensorTest : public ::testing::TestWithParam<SharedTensor> {};

TEST_P(SharedTensorTest, HasTilesForEachRead) {
  const Workload workload = CanonicalWorkload(GetParam().text);
  for (const char* preset : {"h200", "a100"}) {
    const absl::StatusOr<Target> target = ParseTarget(preset);
    ASSERT_TRUE(target.ok()) << target.status();
    const std::vector<Sketch> sketches = GenerateSketches(workload, *target);
    for (const Sketch& sketch : sketches) {
      EXPECT_FALSE(absl::StrContains(sketch.name, "naive")) << preset;
      const absl::Status same = CheckLoweredPoint(workload, *target, sketch, sketch.default_choice, 1e-3);
      EXPECT_TRUE(same.ok()) << preset << ", " << sketch.name << ": " << same;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, SharedTensorTest, ::testing::ValuesIn(kCases),
                         [](const auto& c) { return c.param.name; });

}  // namespace
}  // namespace mycc
