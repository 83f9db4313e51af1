// Every rule on every kind of workload: the default and random points of the space replay, verify, and mean
// what the workload means.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "gtest/gtest.h"
#include "tests/schedule/testing.h"
#include "tests/tuner/points.h"

namespace mycc {
namespace {

struct Case {
  const char* name;
  const char* sketch;
  const char* workload;
};

constexpr Case kCases[] = {
    {"gemm", "contraction",
     R"(workload g(a: f32[23,17], b: const f32[17,37]) -> (c: f32[23,37]) { c[i,j] = sum[k:17](a[i,k] * b[k,j]) })"},
    {"gemm_activations", "contraction",
     R"(workload g(a: f32[23,17], b: f32[17,37]) -> (c: f32[23,37]) { c[i,j] = sum[k:17](a[i,k] * b[k,j]) })"},
    {"gemm_transposed_weights", "contraction",
     R"(workload g(a: f32[9,70], b: const f32[33,70]) -> (c: f32[9,33]) { c[i,j] = sum[k:70](a[i,k] * b[j,k]) })"},
    {"gemm_bias_gelu", "contraction",
     R"(workload g(a: f32[7,20], b: const f32[20,24], bias: f32[24]) -> (y: f32[7,24]) {
          c[i,j]: f32[7,24] = sum[k:20](a[i,k] * b[k,j])
          d[i,j]: f32[7,24] = c[i,j] + bias[j]
          y[i,j] = d[i,j] * 0.5 * (1.0 + erf(d[i,j] * 0.70710678)) })"},
    {"gemm_one_row", "contraction",
     R"(workload g(a: f32[1,64], b: const f32[64,50]) -> (c: f32[1,50]) { c[i,j] = sum[k:64](a[i,k] * b[k,j]) })"},
    {"gemv_contiguous_along_k", "dot",
     R"(workload g(a: f32[70], b: f32[33,70]) -> (c: f32[33]) { c[j] = sum[k:70](a[k] * b[j,k]) })"},
    {"gemv_short", "row",
     R"(workload g(a: f32[50], b: f32[33,50]) -> (c: f32[33]) { c[j] = sum[k:50](a[k] * b[j,k]) })"},
    {"dots_bias_relu", "dot",
     R"(workload g(a: f32[5,70], b: f32[11,70], z: f32[11]) -> (y: f32[5,11]) {
          c[i,j]: f32[5,11] = sum[k:70](a[i,k] * b[j,k])
          d[i,j]: f32[5,11] = c[i,j] + z[j]
          y[i,j] = max(d[i,j], 0.0) })"},
    {"dots_of_batches", "dot",
     R"(workload g(a: bf16[3,5,70], b: bf16[3,9,70]) -> (y: f32[3,5,9]) {
          y[n,i,j] = sum[k:70](f32(a[n,i,k]) * f32(b[n,j,k])) })"},
    {"dots_of_few_columns", "dot",
     R"(workload g(a: f32[21,130], b: const f32[3,130]) -> (y: f32[21,3]) { y[i,j] = sum[k:130](a[i,k] * b[j,k]) })"},
    {"dots_of_a_cast", "dot",
     R"(workload g(x: i8[7,100], b: i8[6,2,100]) -> (y: i32[7,6]) {
          y[i,j] = sum[r:2, k:100](i32(x[i,k]) * i32(b[j,r,k])) })"},
    {"row_sum_of_products", "row",
     R"(workload norm(x: f32[6,80], g: f32[80], m: f32[6]) -> (s: f32[6]) {
          d[i,j]: f32[6,80] = exp(x[i,j] - m[i])
          s[i] = sum[j:80](d[i,j] * g[j]) })"},
    {"gemm_f64", "contraction",
     R"(workload g(a: f64[9,12], b: const f64[12,20]) -> (c: f64[9,20]) { c[i,j] = sum[k:12](a[i,k] * b[k,j]) })"},
    {"batched", "contraction",
     R"(workload g(a: f32[3,9,12], b: f32[3,12,20]) -> (c: f32[3,9,20]) { c[n,i,j] = sum[k:12](a[n,i,k] * b[n,k,j]) })"},
    {"conv_nhwc", "contraction",
     R"(workload conv(x: f32[1,9,8,6], w: const f32[20,6,3,3], b: const f32[20]) -> (y: f32[1,9,8,20]) {
          p[n,i,j,c]: f32[1,11,10,6] = select(1 <= i && i < 10 && 1 <= j && j < 9, x[n,i-1,j-1,c], 0.0)
          a[n,i,j,k]: f32[1,9,8,20] = sum[c:6, r:3, s:3](p[n,i+r,j+s,c] * w[k,c,r,s])
          y[n,i,j,k] = max(a[n,i,j,k] + b[k], 0.0) })"},
    {"conv_without_a_corner", "contraction",
     R"(workload conv(x: f32[1,5,8,6], w: const f32[20,6,3,3]) -> (y: f32[1,5,8,20]) {
          p[n,i,j,c]: f32[1,7,10,6] = select(1 <= i && i < 6 && 1 <= j && j < 9 && i + j < 13, x[n,i-1,j-1,c], 0.0)
          y[n,i,j,k] = sum[c:6, r:3, s:3](p[n,i+r,j+s,c] * w[k,c,r,s]) })"},
    {"conv_strided_residual", "contraction",
     R"(workload conv(x: f32[1,9,9,6], w: const f32[10,6,3,3], q: f32[1,4,4,10]) -> (y: f32[1,4,4,10]) {
          a[n,i,j,k]: f32[1,4,4,10] = sum[c:6, r:3, s:3](x[n,i*2+r,j*2+s,c] * w[k,c,r,s])
          y[n,i,j,k] = max(a[n,i,j,k] + q[n,i,j,k], 0.0) })"},
    {"conv_nchw", "contraction",
     R"(workload conv(x: f32[1,6,9,12], w: const f32[10,6,3,3]) -> (y: f32[1,10,7,10]) {
          y[n,k,i,j] = sum[c:6, r:3, s:3](x[n,c,i+r,j+s] * w[k,c,r,s]) })"},
    {"conv_dilated", "contraction",
     R"(workload conv(x: f32[1,11,11,4], w: const f32[9,4,3,3]) -> (y: f32[1,7,7,9]) {
          y[n,i,j,k] = sum[c:4, r:3, s:3](x[n,i+r*2,j+s*2,c] * w[k,c,r,s]) })"},
    {"conv_transposed", "contraction",
     R"(workload conv(x: f32[1,4,5,6], w: const f32[6,20,4,4], b: f32[20]) -> (y: f32[1,8,10,20]) {
          a[n,i,j,k]: f32[1,8,10,20] = sum[c:6, r:4, s:4](
            select(r <= i+1 && (i+1-r) % 2 == 0 && i+1-r < 8 && s <= j+1 && (j+1-s) % 2 == 0 && j+1-s < 10,
                   x[n,(i+1-r)//2,(j+1-s)//2,c], 0.0) * w[c,k,r,s])
          y[n,i,j,k] = max(a[n,i,j,k] + b[k], 0.0) })"},
    {"depthwise", "tile",
     R"(workload conv(x: f32[1,7,7,20], w: const f32[20,3,3], b: const f32[20]) -> (y: f32[1,7,7,20]) {
          p[n,i,j,c]: f32[1,9,9,20] = select(1 <= i && i < 8 && 1 <= j && j < 8, x[n,i-1,j-1,c], 0.0)
          a[n,i,j,c]: f32[1,7,7,20] = sum[r:3, s:3](p[n,i+r,j+s,c] * w[c,r,s])
          y[n,i,j,c] = max(a[n,i,j,c] + b[c], 0.0) })"},
    {"conv_nchw_strided", "crosswise",
     R"(workload conv(x: f32[2,6,9,12], w: const f32[20,6,3,3], b: f32[20]) -> (y: f32[2,20,4,5]) {
          a[n,k,i,j]: f32[2,20,4,5] = sum[c:6, r:3, s:3](x[n,c,i*2+r,j*2+s] * w[k,c,r,s])
          y[n,k,i,j] = max(a[n,k,i,j] + b[k], 0.0) })"},
    {"conv_nchw_few_columns", "crosswise",
     R"(workload conv(x: f32[2,6,6,6], w: const f32[24,6,3,3]) -> (y: f32[2,24,4,4]) {
          y[n,k,i,j] = sum[c:6, r:3, s:3](x[n,c,i+r,j+s] * w[k,c,r,s]) })"},
    {"grouped", "contraction",
     R"(workload conv(x: f32[1,6,6,8], w: const f32[16,4,3,3]) -> (y: f32[1,4,4,16]) {
          y[n,i,j,k] = sum[c:4, r:3, s:3](x[n,i+r,j+s,(k//8)*4+c] * w[k,c,r,s]) })"},
    {"grouped_padded_bias", "contraction",
     R"(workload conv(x: f32[1,5,5,6], w: const f32[24,2,3,3], b: f32[24]) -> (y: f32[1,5,5,24]) {
          p[n,i,j,c]: f32[1,7,7,6] = select(1 <= i && i < 6 && 1 <= j && j < 6, x[n,i-1,j-1,c], 0.0)
          a[n,i,j,k]: f32[1,5,5,24] = sum[c:2, r:3, s:3](p[n,i+r,j+s,(k//8)*2+c] * w[k,c,r,s])
          y[n,i,j,k] = max(a[n,i,j,k] + b[k], 0.0) })"},
    {"grouped_few_columns", "tile",
     R"(workload conv(x: f32[1,6,6,16], w: const f32[16,4,3,3]) -> (y: f32[1,4,4,16]) {
          y[n,i,j,k] = sum[c:4, r:3, s:3](x[n,i+r,j+s,(k//4)*4+c] * w[k,c,r,s]) })"},
    {"grouped_nchw", "contraction",
     R"(workload conv(x: f32[1,8,6,19], w: const f32[24,2,3,3], b: f32[24]) -> (y: f32[1,24,4,17]) {
          a[n,k,i,j]: f32[1,24,4,17] = sum[c:2, r:3, s:3](x[n,(k//6)*2+c,i+r,j+s] * w[k,c,r,s])
          y[n,k,i,j] = max(a[n,k,i,j] + b[k], 0.0) })"},
    {"grouped_nchw_strided", "crosswise",
     R"(workload conv(x: f32[1,4,7,9], w: const f32[20,2,3,3]) -> (y: f32[1,20,3,4]) {
          y[n,k,i,j] = sum[c:2, r:3, s:3](x[n,(k//10)*2+c,i*2+r,j*2+s] * w[k,c,r,s]) })"},
    {"gemm_int", "tile",
     R"(workload g(a: i32[9,12], b: const i32[12,20]) -> (c: i32[9,20]) { c[i,j] = sum[k:12](a[i,k] * b[k,j]) })"},
    {"max_pool", "tile",
     R"(workload pool(x: f32[1,9,9,12]) -> (y: f32[1,4,4,12]) { y[n,i,j,c] = max[r:3, s:3](x[n,i*2+r,j*2+s,c]) })"},
    {"max_pool_nchw", "tile",
     R"(workload pool(x: f32[1,3,9,37]) -> (y: f32[1,3,4,18]) { y[n,c,i,j] = max[r:3, s:3](x[n,c,i*2+r,j*2+s]) })"},
    {"global_average_pool", "tile",
     R"(workload pool(x: f32[1,7,7,20]) -> (y: f32[1,20]) {
          s[n,c]: f32[1,20] = sum[i:7, j:7](x[n,i,j,c])
          y[n,c] = s[n,c] * 0.020408163 })"},
    {"column_sum", "tile", R"(workload r(x: f32[30,21]) -> (y: f32[21]) { y[j] = sum[i:30](x[i,j]) })"},
    {"softmax", "row",
     R"(workload softmax(x: f32[5,37]) -> (y: f32[5,37]) {
          m[i]: f32[5] = max[j:37](x[i,j])
          e[i,j]: f32[5,37] = exp(x[i,j] - m[i])
          s[i]: f32[5] = sum[j:37](e[i,j])
          y[i,j] = e[i,j] / s[i] })"},
    {"layer_norm", "row",
     R"(workload norm(x: f32[6,40], g: f32[40], b: f32[40]) -> (y: f32[6,40]) {
          s[i]: f32[6] = sum[j:40](x[i,j])
          u[i]: f32[6] = s[i] * 0.025
          d[i,j]: f32[6,40] = x[i,j] - u[i]
          q[i]: f32[6] = sum[j:40](d[i,j] * d[i,j])
          r[i]: f32[6] = rsqrt(q[i] * 0.025 + 0.00001)
          y[i,j] = d[i,j] * r[i] * g[j] + b[j] })"},
    {"row_sum", "row", R"(workload r(x: f32[5,300]) -> (y: f32[5]) { y[i] = sum[j:300](x[i,j]) })"},
    {"full_sum", "row", R"(workload r(x: f32[500]) -> (y: f32[]) { y[] = sum[j:500](x[j]) })"},
    {"argmax", "row", R"(workload r(x: f32[5,30]) -> (y: i32[5]) { y[i] = argmax[j:30](x[i,j]) })"},
    {"gelu", "elementwise",
     R"(workload e(x: f32[6,50]) -> (y: f32[6,50]) {
          c[i,j]: f32[6,50] = x[i,j] * x[i,j] * x[i,j]
          y[i,j] = 0.5 * x[i,j] * (1.0 + tanh(0.79788456 * (x[i,j] + 0.044715 * c[i,j]))) })"},
    {"broadcast", "elementwise",
     R"(workload e(x: f32[6,50], b: f32[50]) -> (y: f32[6,50]) { y[i,j] = x[i,j] + b[j] })"},
    {"transpose", "elementwise", R"(workload t(x: f32[33,50]) -> (y: f32[50,33]) { y[i,j] = x[j,i] })"},
    {"gather", "elementwise",
     R"(workload g(x: f32[40,17], idx: i32[9]) -> (y: f32[9,17]) { y[i,j] = x[clamp(idx[i], 0, 39), j] })"},
    {"attention", "contraction+row+contraction",
     R"(workload a(q: f32[6,8], k: f32[10,8], v: f32[10,12]) -> (p: f32[6,10], y: f32[6,12]) {
          c[i,j]: f32[6,10] = sum[d:8](q[i,d] * k[j,d])
          m[i]: f32[6] = max[j:10](c[i,j])
          e[i,j]: f32[6,10] = exp(c[i,j] - m[i])
          s[i]: f32[6] = sum[j:10](e[i,j])
          p[i,j] = e[i,j] / s[i]
          y[i,d] = sum[j:10](p[i,j] * v[j,d]) })"},
};

// Few rows and columns: threads share the depth.
constexpr Case kDeepCases[] = {
    {"gemm", "contraction",
     R"(workload g(a: f32[5,261], b: const f32[261,7]) -> (c: f32[5,7]) { c[i,j] = sum[k:261](a[i,k] * b[k,j]) })"},
    {"gemm_bias_relu", "contraction",
     R"(workload g(a: f32[3,200], b: f32[200,20], z: f32[20]) -> (y: f32[3,20]) {
          c[i,j]: f32[3,20] = sum[k:200](a[i,k] * b[k,j])
          d[i,j]: f32[3,20] = c[i,j] + z[j]
          y[i,j] = max(d[i,j], 0.0) })"},
    {"gemm_residual", "contraction",
     R"(workload g(a: f32[3,200], b: const f32[5,200], z: f32[3,5]) -> (y: f32[3,5]) {
          c[i,j]: f32[3,5] = sum[k:200](a[i,k] * b[j,k])
          y[i,j] = c[i,j] + z[i,j] })"},
    {"one_row", "contraction",
     R"(workload g(a: f64[515], b: f64[515,8]) -> (c: f64[8]) { c[j] = sum[k:515](a[k] * b[k,j]) })"},
    {"gradient_of_weights", "contraction",
     R"(workload g(x: f32[2,19,20,5], d: f32[2,17,18,6]) -> (w: f32[3,3,5,6]) {
          w[r,s,c,k] = sum[n:2, i:17, j:18](x[n,i+r,j+s,c] * d[n,i,j,k]) })"},
    {"crosswise", "crosswise",
     R"(workload conv(x: f32[1,140,2,3], w: const f32[20,140,2,2], b: f32[20]) -> (y: f32[1,20,1,2]) {
          a[n,k,i,j]: f32[1,20,1,2] = sum[c:140, r:2, s:2](x[n,c,i+r,j+s] * w[k,c,r,s])
          y[n,k,i,j] = max(a[n,k,i,j] + b[k], 0.0) })"},
    {"grouped", "contraction",
     R"(workload conv(x: f32[1,2,3,280], w: const f32[24,140,2,2]) -> (y: f32[1,1,2,24]) {
          y[n,i,j,k] = sum[c:140, r:2, s:2](x[n,i+r,j+s,(k//12)*140+c] * w[k,c,r,s]) })"},
    {"padded", "contraction",
     R"(workload conv(x: f32[1,3,3,130], w: const f32[9,130,3,3]) -> (y: f32[1,1,1,9]) {
          p[n,i,j,c]: f32[1,5,5,130] = select(1 <= i && i < 4 && 1 <= j && j < 4, x[n,i-1,j-1,c], 0.0)
          y[n,i,j,k] = sum[c:130, r:3, s:3](p[n,i*3+r,j*3+s,c] * w[k,c,r,s]) })"},
};

class DeepTest : public ::testing::TestWithParam<Case> {};

TEST_P(DeepTest, PartsOfTheDepthAddUp) {
  const Workload workload = CanonicalWorkload(GetParam().workload);
  const Sketch sketch = GenerateSketches(workload, TestTarget()).front();
  EXPECT_EQ(sketch.name, GetParam().sketch);
  std::string split;
  for (const Decision& decision : sketch.space.decisions) {
    if (absl::EndsWith(decision.name, ".split")) split = decision.name;
  }
  EXPECT_EQ(CheckPoints(workload, sketch, TestTarget(), 1e-4, 12, split), 12);
}

INSTANTIATE_TEST_SUITE_P(All, DeepTest, ::testing::ValuesIn(kDeepCases),
                         [](const auto& info) { return std::string(info.param.name); });

// The default's value of a decision; 0 where there is nothing to decide.
int64_t DefaultOf(const std::string& name, const std::string& text, const Target& target) {
  const Sketch sketch = GenerateSketches(CanonicalWorkload(text), target).front();
  EXPECT_TRUE(sketch.space.Legal(sketch.default_choice)) << text;
  for (const Decision& decision : sketch.space.decisions) {
    if (absl::EndsWith(decision.name, absl::StrCat(".", name)))
      return sketch.space.Value(sketch.default_choice, decision.name);
  }
  return 0;
}
int64_t DefaultSplit(const std::string& text, const Target& target) {
  return DefaultOf("split", text, target);
}

TEST(DepthTest, TheDefaultCutsItWhereThreadsWouldIdle) {
  const auto gemm = [](int m, int n, int k) {
    return absl::StrCat("workload g(a: f32[", m, ",", k, "], b: const f32[", k, ",", n, "]) -> (c: f32[", m,
                        ",", n, "]) { c[i,j] = sum[k:", k, "](a[i,k] * b[k,j]) }");
  };
  const Target target = TestTarget();
  const Target eight = *ParseTarget("v1 cpu mcpu=znver4 l1d=32K l2=1M threads=8");
  const Target one = *ParseTarget("v1 cpu mcpu=znver4 l1d=32K l2=1M threads=1");
  EXPECT_EQ(DefaultSplit(gemm(4, 16, 65536), target), 2);
  EXPECT_EQ(DefaultSplit(gemm(16, 16, 65536), eight), 8);
  EXPECT_EQ(DefaultSplit(gemm(16, 16, 65536), one), 1);
  EXPECT_EQ(DefaultSplit(gemm(16, 16, 64), target), 1);     // too little work
  EXPECT_EQ(DefaultSplit(gemm(512, 512, 512), target), 1);  // blocks enough
}

// A line of each row of a tile is in L1 at the same time. Rows 4 KiB apart share one set of it.
TEST(TileTest, RowsThatShareSetsOfL1AreNoMoreThanItsWays) {
  const auto rows = [](int depth, int columns, const char* l1d) {
    const std::string text = absl::Substitute(
        "workload g(a: f32[196,$0], b: const f32[$0,$1]) -> (c: f32[196,$1]) { "
        "c[i,j] = sum[k:$0](a[i,k] * b[k,j]) }",
        depth, columns);
    const Target target = *ParseTarget(absl::StrCat("v1 cpu mcpu=znver4 l1d=", l1d, " l2=1M threads=2"));
    EXPECT_EQ(DefaultOf("pack_a", text, target), 0);
    return DefaultOf("mr", text, target);
  };
  EXPECT_EQ(rows(1000, 256, "48K"), 14);
  EXPECT_LE(rows(1024, 256, "48K"), 9) << "of the operand";
  EXPECT_LE(rows(256, 1024, "48K"), 9) << "of the result";
  EXPECT_LE(rows(3072, 256, "32K"), 6);
  EXPECT_LE(rows(512, 256, "32K"), 12) << "two sets";
  EXPECT_EQ(rows(512, 256, "48K"), 14);
}

// 3 x 3 windows over images of 56 lines, or lines and channels as given.
int64_t DefaultBands(int images, int lines, int channels, const char* constant, int threads) {
  const int padded = lines + 2;
  return DefaultOf(
      "bands",
      absl::Substitute(R"(workload c(x: bf16[$0,$1,$1,$2], w: $4bf16[$2,3,3,$2]) -> (y: f32[$0,$1,$1,$2]) {
  p[n,i,j,c]: bf16[$0,$3,$3,$2] = select(1 <= i && i < $3 - 1 && 1 <= j && j < $3 - 1, x[n,i-1,j-1,c], 0.0)
  y[n,i,j,k] = sum[r:3, s:3, c:$2](f32(p[n,i+r,j+s,c]) * f32(w[k,r,s,c])) })",
                       images, lines, channels, padded, constant),
      *ParseTarget(
          absl::StrCat("v1 cpu mcpu=sapphirerapids features=+amx-bf16 l1d=48K l2=2M threads=", threads)));
}

TEST(BandsTest, TheDefaultGivesEveryThreadOneWhereTilesMultiply) {
  EXPECT_EQ(DefaultBands(1, 56, 64, "const ", 1), 0);
  EXPECT_EQ(DefaultBands(1, 56, 64, "const ", 2), 2);
  EXPECT_EQ(DefaultBands(1, 56, 64, "const ", 8), 8);
  EXPECT_EQ(DefaultBands(1, 14, 256, "const ", 2), 2);   // of columns: each copies the whole image
  EXPECT_EQ(DefaultBands(1, 14, 256, "const ", 16), 0);  // which then takes longer than it saves
  EXPECT_EQ(DefaultBands(8, 56, 64, "const ", 8), 1);    // an image for each
  EXPECT_EQ(DefaultBands(1, 56, 64, "", 8), 0);          // panels of weights are made at run time
  EXPECT_EQ(
      DefaultOf("bands", R"(workload c(x: f32[1,56,56,64], w: const f32[64,3,3,64]) -> (y: f32[1,56,56,64]) {
  p[n,i,j,c]: f32[1,58,58,64] = select(1 <= i && i < 57 && 1 <= j && j < 57, x[n,i-1,j-1,c], 0.0)
  y[n,i,j,k] = sum[r:3, s:3, c:64](p[n,i+r,j+s,c] * w[k,r,s,c]) })",
                TestTarget()),
      0);
}

class RulesTest : public ::testing::TestWithParam<Case> {};

TEST_P(RulesTest, PointsMeanWhatTheWorkloadMeans) {
  const Workload workload = CanonicalWorkload(GetParam().workload);
  const std::vector<Sketch> sketches = GenerateSketches(workload, TestTarget());
  EXPECT_EQ(sketches.front().name, GetParam().sketch);
  for (const Sketch& sketch : sketches)
    EXPECT_GE(CheckPoints(workload, sketch, TestTarget(), 1e-5), sketch.space.size() >= 12 ? 8 : 1);
}

INSTANTIATE_TEST_SUITE_P(All, RulesTest, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// A chain of 16 stages. Each reads the one before it more than once, so inlining all of them would double the
// work 16 times.
std::string Doubling(const std::string& first, const std::string& next) {
  std::string text = absl::StrCat("workload w(x: f32[8,8], z: f32[8,8]) -> (y: f32[8,8]) {\n", first, "\n");
  for (int s = 1; s <= 16; ++s)
    absl::StrAppend(&text, "  a", s, "[i,j]: f32[8,8] = ", absl::Substitute(next, absl::StrCat("a", s - 1)),
                    "\n");
  return text + "  y[i,j] = a16[i,j] + a16[j,i]\n}\n";
}

TEST(InliningTest, NoStageGrowsBeyondABound) {
  constexpr char kCopy[] = "  a0[i,j]: f32[8,8] = x[i,j] + z[i,j]";
  constexpr char kProduct[] = "  a0[i,j]: f32[8,8] = sum[k:8](x[i,k] * z[k,j])";
  constexpr char kRow[] = "  r[i]: f32[8] = sum[k:8](x[i,k])\n  a0[i,j]: f32[8,8] = x[i,j] - r[i]";
  constexpr char kGram[] = "  a0[i,j]: f32[8,8] = sum[k:8](x[i,k] * x[j,k])";
  constexpr char kTransposed[] = "$0[i,j] * 0.5 + $0[j,i] * 0.5", kTwice[] = "$0[i,j] * ($0[i,j] - 0.5)";
  constexpr char kMixed[] = "$0[(i * 3 + i // 2 + j) % 8, (j + i) % 8]";  // the indices grow, too
  constexpr size_t kMostText = 200'000;
  for (const char* first : {kCopy, kProduct, kRow, kGram}) {
    for (const char* next : {kTransposed, kTwice, kMixed}) {
      const Workload workload = CanonicalWorkload(Doubling(first, next));
      for (const Target& target : {TestTarget(), *ParseTarget("a100")}) {
        const Sketch sketch = GenerateSketches(workload, target).front();
        const auto schedule = Replay(workload, target, sketch.instantiate(sketch.default_choice).value());
        ASSERT_TRUE(schedule.ok()) << schedule.status();
        EXPECT_LT(PrintFunction(schedule->function()).size(), kMostText) << sketch.name << first << next;
      }
    }
    const Workload workload = CanonicalWorkload(Doubling(first, kTransposed));
    EXPECT_GE(CheckPoints(workload, GenerateSketches(workload, TestTarget()).front(), TestTarget(), 1e-5, 2),
              1);
  }
}

}  // namespace
}  // namespace mycc
