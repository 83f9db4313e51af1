// The canonical form and the two hashes: what changes them, and what does not.
#include "codegen/workload/canonical.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "codegen/workload/parse.h"
#include "tests/golden/golden.h"

namespace mycc {
namespace {

Workload Parse(const std::string& text) {
  auto workload = ParseWorkload(text, "test");
  EXPECT_TRUE(workload.ok()) << workload.status() << "\n" << text;
  return workload.ok() ? *std::move(workload) : Workload();
}

std::string Canonical(const std::string& text) { return CanonicalText(Parse(text)); }
std::string Erased(const std::string& text) { return ShapeErasedText(Parse(text)); }

std::string Conv(int channels, int filters, int size, int kernel, int stride) {
  const int pad = kernel / 2, padded = size + 2 * pad, out = (padded - kernel) / stride + 1;
  return absl::StrCat("workload conv(x: f32[1,", channels, ",", size, ",", size, "], w: const f32[", filters,
                      ",", channels, ",", kernel, ",", kernel, "], b: const f32[", filters,
                      "]) -> (y: f32[1,", filters, ",", out, ",", out, "]) {\n  p[n,c,i,j]: f32[1,", channels,
                      ",", padded, ",", padded, "] = select(", pad, " <= i && i < ", size + pad, " && ", pad,
                      " <= j && j < ", size + pad, ", x[n,c,i-", pad, ",j-", pad,
                      "], 0.0)\n  a[n,k,i,j]: f32[1,", filters, ",", out, ",", out, "] = sum[c:", channels,
                      ", r:", kernel, ", s:", kernel, "](p[n,c,", stride, "*i+r,", stride,
                      "*j+s] * w[k,c,r,s])\n  y[n,k,i,j] = max(a[n,k,i,j] + b[k], 0.0)\n}");
}

std::string Attention(int heads, int tokens, int width, const char* scale) {
  const std::string t = absl::StrCat(heads, ",", tokens, ",", tokens),
                    v = absl::StrCat(heads, ",", tokens, ",", width);
  return absl::StrCat("workload attention(q: f32[", v, "], k: f32[", v, "], v: f32[", v, "]) -> (o: f32[", v,
                      "]) {\n  s[h,i,j]: f32[", t, "] = sum[d:", width,
                      "](q[h,i,d] * k[h,j,d])\n  c[h,i,j]: f32[", t, "] = select(j <= i, s[h,i,j] * ", scale,
                      ", -inf)\n  m[h,i]: f32[", heads, ",", tokens, "] = max[j:", tokens,
                      "](c[h,i,j])\n  e[h,i,j]: f32[", t, "] = exp(c[h,i,j] - m[h,i])\n  z[h,i]: f32[", heads,
                      ",", tokens, "] = sum[j:", tokens, "](e[h,i,j])\n  o[h,i,d] = sum[j:", tokens,
                      "](e[h,i,j] / z[h,i] * v[h,j,d])\n}");
}

TEST(Canonical, Goldens) {
  std::string all;
  for (const std::string& text :
       {Conv(64, 64, 56, 3, 1), Attention(12, 128, 64, "0.125"),
        std::string("workload gather(i: i32[5], t: const f32[10,4]) -> (y: f32[5,4]) { y[r,c] = "
                    "t[clamp(i[r], 0, 9), c] }")}) {
    absl::StrAppend(&all, text, "\n\n", Canonical(text), "\n", WorkloadHash(Parse(text)), "\n\n",
                    Erased(text), ShapeErasedHash(Parse(text)), "\n\n");
  }
  EXPECT_TRUE(MatchesGolden("workload/canonical", all));
}

TEST(Canonical, TheHashIsOfTheText) {
  // Pinned: logs are keyed by it.
  const Workload workload = Parse("workload f(x: f32[4]) -> (y: f32[4]) { y[i] = x[i] + 1.0 }");
  EXPECT_EQ(CanonicalText(workload),
            "v1 workload w(t0: f32[4]) -> (t1: f32[4]) {\n  t1[a0] = t0[a0] + 1.0\n}");
  EXPECT_EQ(WorkloadHash(workload), "1c270cdf3530d6df538a8aad2addfc6d7148307ef4680d9374ef7ca73dd74ed2");
}

TEST(Canonical, NamesCountsAndLayoutOfTheTextDoNotMatter) {
  EXPECT_EQ(Canonical("workload f(x: f32[4]) -> (y: f32[4]) { y[i] = x[i] + 1.0 }"),
            Canonical("# count 9\nv1 workload g(data: f32[2*2]) -> (out: f32[4]) {\n  out[row]: f32[4] =\n "
                      "1.0 + data[row] }"));
}

TEST(Canonical, WhatTheCodeDependsOnMatters) {
  const std::string base =
      Canonical("workload f(x: f32[4], w: f32[4]) -> (y: f32[4]) { y[i] = x[i] - w[i] }");
  for (const char* other :
       {"workload f(x: f32[4], w: f32[4]) -> (y: f32[4]) { y[i] = w[i] - x[i] }",
        "workload f(x: f32[4], w: const f32[4]) -> (y: f32[4]) { y[i] = x[i] - w[i] }",
        "workload f(x: f32[5], w: f32[5]) -> (y: f32[5]) { y[i] = x[i] - w[i] }",
        "workload f(x: f64[4], w: f64[4]) -> (y: f64[4]) { y[i] = x[i] - w[i] }",
        "workload f(x: f32[4], w: f32[4], z: f32[4]) -> (y: f32[4]) { y[i] = x[i] - w[i] }"}) {
    EXPECT_NE(Canonical(other), base) << other;
  }
}

TEST(Canonical, OperandsOfCommutativeOperationsAreOrdered) {
  const std::string head = "workload f(x: f32[4], w: f32[4], p: bool[4]) -> (y: f32[4]) { y[i] = ";
  const auto same = [&](const std::string& a, const std::string& b) {
    return Canonical(head + a + " }") == Canonical(head + b + " }");
  };
  EXPECT_TRUE(same("x[i] * w[i] + 1.0", "1.0 + w[i] * x[i]"));
  EXPECT_TRUE(same("max(x[i], min(w[i], 0.5))", "max(min(0.5, w[i]), x[i])"));
  EXPECT_TRUE(same("select(p[i] && x[i] == w[i], x[i], w[i])", "select(w[i] == x[i] && p[i], x[i], w[i])"));
  EXPECT_TRUE(same("select(p[i] && p[i] && (p[i] || p[i]), x[i], w[i])",
                   "select((p[i] || p[i]) && (p[i] && p[i]), x[i], w[i])"));
  EXPECT_FALSE(same("x[i] / w[i]", "w[i] / x[i]"));
  EXPECT_FALSE(same("pow(x[i], w[i])", "pow(w[i], x[i])"));
  EXPECT_FALSE(same("(x[i] + w[i]) + 1.0", "x[i] + (w[i] + 1.0)"));  // nothing algebraic
  EXPECT_FALSE(same("x[i] * 1.0", "x[i]"));
}

TEST(Canonical, DeadStagesGoAndDoublesMerge) {
  EXPECT_EQ(
      Canonical("workload f(x: f32[4]) -> (y: f32[4]) { d[i]: f32[4] = exp(x[i]) a[i]: f32[4] = x[i] + 1.0 "
                "b[j]: f32[4] = 1.0 + x[j] y[i] = a[i] * b[i] }"),
      Canonical("workload f(x: f32[4]) -> (y: f32[4]) { a[i]: f32[4] = x[i] + 1.0 y[i] = a[i] * a[i] }"));
}

TEST(Canonical, OriginalsAreByNumber) {
  const Workload workload = Parse(
      "workload f(x: f32[4], w: f32[4]) -> (y: f32[4], z: f32[4]) { dead[i]: f32[4] = exp(x[i]) "
      "z[i] = cos(w[i]) b[i]: f32[4] = sin(x[i]) y[i] = b[i] + 1.0 }");
  std::string names;
  for (const Buffer& tensor : OriginalTensors(workload)) absl::StrAppend(&names, tensor->name, " ");
  EXPECT_EQ(names, "x w b y z ");
}

TEST(Canonical, EqualOutputsStayTwo) {
  const Workload canonical =
      Canonicalize(Parse("workload f(x: f32[4]) -> (y: f32[4], z: f32[4]) { t[i]: f32[4] = x[i] + 1.0 "
                         "z[i] = x[i] + 1.0 y[i] = 1.0 + x[i] }"));
  EXPECT_EQ(canonical.stages.size(), 2u);
  EXPECT_NE(canonical.outputs[0], canonical.outputs[1]);
}

TEST(Canonical, StagesStandInTheOrderInWhichOutputsNeedThem) {
  const Workload canonical =
      Canonicalize(Parse("workload f(x: f32[4]) -> (y: f32[4], z: f32[4]) { b[i]: f32[4] = cos(x[i]) a[i]: "
                         "f32[4] = sin(x[i]) z[i] = exp(b[i]) y[i] = exp(a[i]) }"));
  ASSERT_EQ(canonical.stages.size(), 4u);
  EXPECT_EQ(canonical.stages[0].value->op, Op::kSin);
  EXPECT_EQ(canonical.stages[1].output, canonical.outputs[0]);
  EXPECT_EQ(canonical.stages[1].output->name, "t2");
}

TEST(ShapeErased, OneComputationAtAnyShape) {
  EXPECT_EQ(Erased(Conv(64, 64, 56, 3, 1)), Erased(Conv(512, 128, 7, 3, 1)));
  EXPECT_EQ(Erased(Conv(3, 64, 224, 7, 2)), Erased(Conv(16, 32, 112, 3, 2)));
  EXPECT_EQ(Erased(Attention(12, 128, 64, "0.125")), Erased(Attention(1, 7, 16, "0.25")));
  EXPECT_EQ(Erased(Attention(12, 128, 64, "0.125")), Erased(Attention(16, 77, 80, "0.1118034")));
  EXPECT_EQ(
      Erased(
          "workload f(x: f32[8,16]) -> (y: f32[8]) { s[i]: f32[8] = sum[k:16](x[i,k]) y[i] = s[i] / 16.0 }"),
      Erased(
          "workload f(x: f32[2,50]) -> (y: f32[2]) { s[i]: f32[2] = sum[k:50](x[i,k]) y[i] = s[i] / 50.0 }"));
  EXPECT_EQ(Erased("workload f(x: f32[6,4]) -> (y: f32[24]) { y[i] = x[i//4,i%4] }"),
            Erased("workload f(x: f32[2,9]) -> (y: f32[18]) { y[i] = x[i//9,i%9] }"));
  EXPECT_EQ(Erased("workload f(x: f32[24]) -> (y: f32[6,4]) { y[i,j] = x[i*4+j] }"),
            Erased("workload f(x: f32[18]) -> (y: f32[2,9]) { y[i,j] = x[i*9+j] }"));
  EXPECT_EQ(
      Erased("workload f(i: i32[5], t: f32[10,4]) -> (y: f32[5,4]) { y[r,c] = t[clamp(i[r], 0, 9), c] }"),
      Erased("workload f(i: i32[8], t: f32[99,6]) -> (y: f32[8,6]) { y[r,c] = t[clamp(i[r], 0, 98), c] }"));
}

TEST(ShapeErased, OtherComputationsDiffer) {
  EXPECT_NE(Erased(Conv(64, 64, 56, 3, 1)), Erased(Conv(64, 64, 56, 3, 2)));  // stride
  EXPECT_NE(Erased(Attention(12, 128, 64, "0.125")), Erased(Attention(12, 128, 64, "3.0")));
  EXPECT_NE(Erased("workload f(x: f32[8]) -> (y: f32[8]) { y[i] = x[i] * 2.0 }"),
            Erased("workload f(x: f32[8]) -> (y: f32[8]) { y[i] = x[i] * 3.0 }"));
  EXPECT_NE(Erased("workload f(x: f32[8]) -> (y: f32[8]) { y[i] = x[i] }"),
            Erased("workload f(x: f64[8]) -> (y: f64[8]) { y[i] = x[i] }"));
  EXPECT_NE(Erased("workload f(m: i64[8]) -> (y: i64[8]) { y[i] = m[i] * 5 }"),
            Erased("workload f(m: i64[8]) -> (y: i64[8]) { y[i] = m[i] * 7 }"));
}

}  // namespace
}  // namespace mycc
