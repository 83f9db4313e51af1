// Workloads of every class, naive and as reference kernels, against the language's reference semantics.
#include "absl/strings/str_cat.h"
#include "codegen/driver/reference_kernel.h"
#include "gtest/gtest.h"
#include "tests/llvm/compiled.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

struct Case {
  const char* name;
  const char* text;
  double tolerance = 1e-5;
};

const Case kCases[] = {
    {"gemm", R"(workload w(a: f32[13,17], b: const f32[17,19]) -> (c: f32[13,19]) {
  c[i,j] = sum[k:17](a[i,k] * b[k,j])
})"},
    {"gemm_f64", R"(workload w(a: f64[5,9], b: f64[9,7]) -> (c: f64[5,7]) {
  c[i,j] = sum[k:9](a[i,k] * b[k,j])
})",
     1e-13},
    {"gemm_f8e4m3", R"(workload w(a: f8e4m3[5,9], b: const f8e4m3[9,7]) -> (c: f8e5m2[5,7], s: f32[5,7]) {
  s[i,j] = sum[k:9](f32(a[i,k]) * f32(b[k,j]))
  c[i,j] = f8e5m2(s[i,j])
})"},
    {"gemm_bf16", R"(workload w(a: bf16[5,9], b: const bf16[9,7]) -> (c: bf16[5,7]) {
  c[i,j] = sum[k:9](a[i,k] * b[k,j])
})",
     3e-2},
    {"conv_padded_strided",
     R"(workload w(x: f32[1,5,11,9], w: const f32[7,5,3,3], b: const f32[7]) -> (y: f32[1,7,6,5]) {
  p[n,c,i,j]: f32[1,5,13,11] = select(1 <= i && i < 12 && 1 <= j && j < 10, x[n,c,i-1,j-1], 0.0)
  a[n,k,i,j]: f32[1,7,6,5] = sum[c:5, r:3, s:3](p[n,c,i*2+r,j*2+s] * w[k,c,r,s])
  y[n,k,i,j] = max(a[n,k,i,j] + b[k], 0.0)
})"},
    {"conv_dilated_grouped", R"(workload w(x: f32[1,6,9,9], w: const f32[8,3,3,3]) -> (y: f32[1,8,5,5]) {
  y[n,k,i,j] = sum[c:3, r:3, s:3](x[n,k // 4 * 3 + c,i+r*2,j+s*2] * w[k,c,r,s])
})"},
    {"softmax", R"(workload w(x: f32[5,37]) -> (y: f32[5,37]) {
  m[i]: f32[5] = max[j:37](x[i,j])
  e[i,j]: f32[5,37] = exp(x[i,j] - m[i])
  s[i]: f32[5] = sum[j:37](e[i,j])
  y[i,j] = e[i,j] / s[i]
})"},
    {"layer_norm", R"(workload w(x: f32[4,33], g: const f32[33], b: const f32[33]) -> (y: f32[4,33]) {
  s[i]: f32[4] = sum[j:33](x[i,j])
  d[i,j]: f32[4,33] = x[i,j] - s[i] / 33.0
  v[i]: f32[4] = sum[j:33](d[i,j] * d[i,j])
  y[i,j] = d[i,j] * rsqrt(v[i] / 33.0 + 0.00001) * g[j] + b[j]
})"},
    {"argmax_rows", R"(workload w(x: f32[6,21]) -> (y: i32[6]) {
  y[i] = argmax[j:21](x[i,j])
})"},
    {"argmin_columns", R"(workload w(x: i32[21,18]) -> (y: i32[18]) {
  y[j] = argmin[i:21](x[i,j])
})"},
    {"gather", R"(workload w(t: f32[50,12], i: i32[9]) -> (y: f32[9,12]) {
  y[a,b] = t[clamp(i[a], 0, 49), b]
})"},
    {"gather_along_rows_by_i64", R"(workload w(t: f32[50], i: i64[37]) -> (y: f32[37]) {
  y[a] = t[clamp(i[a], -50, 49) % 50]
})"},
    {"transpose", R"(workload w(x: f32[7,5,11]) -> (y: f32[11,7,5]) {
  y[a,b,c] = x[b,c,a]
})"},
    {"max_pool", R"(workload w(x: f32[1,4,9,9]) -> (y: f32[1,4,4,4]) {
  y[n,c,i,j] = max[r:3, s:3](x[n,c,i*2+r,j*2+s])
})"},
    {"i8_gemm", R"(workload w(a: u8[5,12], b: const i8[12,9]) -> (c: i32[5,9]) {
  c[i,j] = sum[k:12](i32(a[i,k]) * i32(b[k,j]))
})"},
    {"integers_wrap", R"(workload w(a: i8[40], b: i8[40]) -> (s: i8[40], q: i8[40], r: i8[40], m: i8[40]) {
  s[i] = a[i] * b[i] + a[i]
  q[i] = a[i] // b[i]
  r[i] = a[i] % b[i]
  m[i] = max(abs(a[i]), -b[i])
})"},
    {"short_and_unsigned", R"(workload w(a: i16[40], b: u16[40], c: u32[40], d: u64[40], e: u64[40])
    -> (s: i16[40], t: u16[40], q: u32[40], r: u64[40], m: u64[40], l: bool[40], n: u64[], o: u32[]) {
  s[i] = a[i] * a[39-i] - i16(b[i])
  t[i] = b[i] * 40000 // (b[39-i] + 1)
  q[i] = (c[i] - 8) % (c[39-i] * 400000000)
  r[i] = (d[i] - 8) // e[i]
  m[i] = max(d[i] - 8, e[i]) + min(d[i] - 8, e[i])
  l[i] = d[i] - 8 < e[i]
  n[] = max[i:40](d[i] - 8)
  o[] = min[i:40](c[i] - 8)
})"},
    {"f16_arithmetic", R"(workload w(a: f16[33], b: f16[33]) -> (y: f16[33], z: f32[33]) {
  y[i] = a[i] * b[i] + a[i] / b[i]
  z[i] = f32(a[i])
})",
     4e-3},
    {"conversions",
     R"(workload w(x: f32[37]) -> (a: i32[37], b: u8[37], c: i8[37], d: bf16[37], e: f16[37], f: f64[37], g: bool[37]) {
  a[i] = i32(x[i] * 4000000000.0)
  b[i] = u8(x[i] * 300.0)
  c[i] = i8(x[i] * 300.0)
  d[i] = bf16(x[i])
  e[i] = f16(x[i])
  f[i] = f64(x[i])
  g[i] = x[i] < 0.0
})",
     0},
    {"bool_logic", R"(workload w(a: bool[20], b: bool[20], x: f32[20]) -> (y: bool[20], z: f32[20]) {
  y[i] = a[i] && !b[i] || x[i] < 0.5
  z[i] = select(a[i], x[i], -x[i])
})"},
    {"functions", R"(workload w(x: f32[45]) -> (y: f32[45]) {
  y[i] = tanh(x[i]) + erf(x[i]) + sin(x[i]) * cos(x[i]) + log(abs(x[i]) + 1.0) + pow(abs(x[i]) + 0.5, 1.7) + floor(x[i] * 3.0) + sqrt(abs(x[i]))
})"},
    {"scalar", R"(workload w(x: f32[19]) -> (y: f32[]) {
  y[] = sum[i:19](x[i])
})"},
    {"index_values", R"(workload w(x: f32[6,14]) -> (y: f32[6,14]) {
  y[i,j] = select(j <= i * 2, x[i,j], f32(i * 14 + j))
})"},
    {"prod_min", R"(workload w(x: f32[3,9]) -> (p: f32[3], m: f32[3]) {
  p[i] = prod[j:9](x[i,j] + 1.0)
  m[i] = min[j:9](x[i,j])
})"},
    {"two_consts_folded", R"(workload w(x: f32[5,8], w: const f32[8,16], s: const f32[16]) -> (y: f32[5,16]) {
  f[k,j]: f32[8,16] = w[k,j] * s[j]
  y[i,j] = sum[k:8](x[i,k] * f[k,j])
})"},
};

class WorkloadsTest : public testing::TestWithParam<Case> {};

TEST_P(WorkloadsTest, Naive) {
  const Workload canonical = CanonicalWorkload(GetParam().text);
  for (const Target& target : RunnableTargets()) {
    const absl::Status status = CheckCompiled(canonical, "", target, GetParam().tolerance);
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TEST_P(WorkloadsTest, ReferenceKernel) {
  const Workload canonical = CanonicalWorkload(GetParam().text);
  for (const Target& target : RunnableTargets()) {
    const absl::Status status =
        CheckCompiledFunction(canonical, ReferenceFunction(canonical), target, GetParam().tolerance);
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

// Strides with vectors and shuffles, one too far for them; the last lane reads the tensor's last element.
TEST(LanesTest, ReadEveryFewElements) {
  const struct {
    int64_t n, stride;
  } kCases[] = {{40, 2}, {23, 2}, {5, 2}, {16, 3}, {37, 3}, {21, 4}, {64, 4}, {19, 5}};
  for (const auto& [n, stride] : kCases) {
    const std::string text = absl::StrCat(
        "workload w(x: f32[", (n - 1) * stride + 3, "], d: f64[", (n - 1) * stride + 1, "]) -> (y: f32[", n,
        "], z: f64[", n, "]) {\n y[i] = sum[r:3](x[", stride, "*i+r])\n z[i] = d[", stride, "*i] + 1.0\n}");
    for (const Target& target : RunnableTargets()) {
      const absl::Status status =
          CheckCompiled(CanonicalWorkload(text),
                        "reorder([t2.r0, t2.a0])\nbind(t2.a0, vector)\nbind(t3.a0, vector)\n", target, 1e-6);
      EXPECT_TRUE(status.ok()) << text << status.message();
    }
  }
}

// A window that reads its padding without branches: zeros, the lowest value, another constant; whole vectors
// and tails, contiguous, a few elements apart and of one element.
TEST(LanesTest, ReadPadding) {
  const char* const kWindows[] = {
      "y[i,c] = sum[r:3](select(1 <= i+r && i+r < 8, x[i+r-1,c], 0.0) * w[r])",
      "y[i,c] = max[r:3](select(1 <= i+r && i+r < 8, x[i+r-1,c], -inf))",
      "y[i,c] = sum[r:3](select(1 <= i+r && i+r < 8, x[i+r-1,c//19*3], 0.5) * w[r])",
  };
  for (const char* window : kWindows) {
    const std::string text =
        absl::StrCat("workload w(x: f32[7,19], w: f32[3]) -> (y: f32[7,19]) {\n", window, "\n}");
    const Workload canonical = CanonicalWorkload(text);
    const std::string stage = canonical.stages.back().output->name;
    const std::string steps = absl::StrCat("reorder([", stage, ".a0, ", stage, ".r0, ", stage, ".a1])\nbind(",
                                           stage, ".a1, vector)\n");
    for (const Target& target : RunnableTargets()) {
      const absl::Status status = CheckCompiled(canonical, steps, target, 1e-6);
      EXPECT_TRUE(status.ok()) << text << status.message();
    }
  }
  for (const Target& target : RunnableTargets()) {
    const absl::Status status =
        CheckCompiled(CanonicalWorkload(R"(workload w(x: f32[7,40]) -> (y: f32[7,20]) {
  y[i,j] = max[r:3](select(1 <= i+r && i+r < 8, x[i+r-1,2*j+1], -inf))
})"),
                      "reorder([t1.a0, t1.r0, t1.a1])\nbind(t1.a1, vector)\n", target, 0);
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

// One iteration of the outer lanes is left over; there the inner loop, a reduction, has the lanes.
TEST(LanesTest, ReduceInsideOfLanes) {
  const Workload canonical = CanonicalWorkload(R"(workload w(x: f32[17,24]) -> (y: f32[17]) {
  m[i]: f32[17] = max[j:24](x[i,j])
  y[i] = m[i] * 2.0
})");
  for (const Target& target : RunnableTargets()) {
    const absl::Status status = CheckCompiled(
        canonical, "bind(t2.a0, vector)\ncompute_at(t1, t2.a0)\nbind(t1.r0, vector)\n", target, 0);
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TEST(LanesTest, ReadNothingBeforeATile) {
  const Workload canonical = CanonicalWorkload(R"(workload w(x: f32[23]) -> (y: f32[23]) {
  y[i] = sum[r:5](select(0 <= i - r, x[i-r], 0.0))
})");
  for (const Target& target : RunnableTargets()) {
    const absl::Status status = CheckCompiled(
        canonical, "reorder([t1.r0, t1.a0])\nbind(t1.a0, vector)\ncache_read(t0, t1, root, local)\n", target,
        1e-6);
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

INSTANTIATE_TEST_SUITE_P(All, WorkloadsTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace mycc
