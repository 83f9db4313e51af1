// Parsing of valid workloads.
#include "codegen/workload/parse.h"

#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "codegen/expr/print.h"
#include "codegen/workload/print.h"
#include "tests/golden/golden.h"

namespace mycc {
namespace {

Workload Parse(const std::string& text) {
  auto workload = ParseWorkload(text, "test");
  EXPECT_TRUE(workload.ok()) << workload.status() << "\n" << text;
  return workload.ok() ? *std::move(workload) : Workload();
}

// The value of `y` in a workload of tensors of several types, as it is understood.
std::string Understood(const std::string& type, const std::string& expression) {
  const Workload workload = Parse(
      absl::StrCat("workload f(a: f32[8], b: f32[8], h: f16[8], d: f64[8], n: i64[8], m: i32[8], u: u8[8], "
                   "p: bool[8]) -> (y: ",
                   type, "[8]) { y[i] = ", expression, " }"));
  return workload.stages.empty() ? "" : PrintExpr(workload.stages[0].value);
}

constexpr char kConv[] =
    R"(workload conv2d_relu(x: f32[1,64,56,56], w: const f32[64,64,3,3], b: const f32[64]) -> (y: f32[1,64,56,56]) {
  p[n,c,i,j]: f32[1,64,58,58] = select(1 <= i && i < 57 && 1 <= j && j < 57, x[n,c,i-1,j-1], 0.0)
  a[n,k,i,j]: f32[1,64,56,56] = sum[c:64, r:3, s:3](p[n,c,i+r,j+s] * w[k,c,r,s])
  y[n,k,i,j] = max(a[n,k,i,j] + b[k], 0.0)
}
)";

TEST(Parse, TheExampleOfTheManual) {
  const Workload workload = Parse(kConv);
  EXPECT_EQ(workload.name, "conv2d_relu");
  EXPECT_EQ(workload.count, 1);
  ASSERT_EQ(workload.inputs.size(), 3u);
  EXPECT_FALSE(workload.inputs[0].is_const);
  EXPECT_TRUE(workload.inputs[1].is_const);
  ASSERT_EQ(workload.stages.size(), 3u);
  EXPECT_EQ(workload.stages[2].output, workload.outputs[0]);
  EXPECT_EQ(workload.stages[1].reduce, ReduceOp::kSum);
  ASSERT_EQ(workload.stages[1].reduce_axes.size(), 3u);
  EXPECT_EQ(workload.stages[1].reduce_axes[0]->extent, 64);
  EXPECT_EQ(PrintWorkload(workload), kConv);
}

TEST(Parse, EightBitFloats) {
  constexpr char kText[] = R"(workload f(x: f8e4m3[4], y: const f8e5m2[4]) -> (z: f8e4m3[4], w: f8e5m2[4]) {
  z[i] = f8e4m3(f32(x[i]) * f32(y[i])) + f8e4m3(448.0)
  w[i] = max(y[i], f8e5m2(-inf)) * f8e5m2(57344.0) - f8e5m2(nan)
}
)";
  const Workload workload = Parse(kText);
  EXPECT_EQ(PrintWorkload(workload), PrintWorkload(Parse(PrintWorkload(workload))));
  EXPECT_EQ(workload.inputs[0].tensor->dtype, DType::kF8E4M3);
  EXPECT_EQ(workload.outputs[1]->dtype, DType::kF8E5M2);
  EXPECT_EQ(workload.inputs[1].tensor->bytes(), 4);
}

TEST(Parse, SeveralWorkloadsWithCounts) {
  const auto workloads = ParseWorkloads(
      "# a file\n\n# count 3\nworkload a() -> (y: f32[]) { y[] = 0.0 }\n"
      "# count 12\n# the second\nv1 workload b() -> (y: f32[]) { y[] = 0.0 }\n"
      "# count 5\n\nworkload c() -> (y: f32[]) { y[] = 0.0 } # count 7\nworkload d() -> (y: f32[]) { y[] = "
      "0.0 }\n"
      "# counted elsewhere\n# count of layers\nworkload e() -> (y: f32[]) { y[] = 0.0 }",
      "test");
  ASSERT_TRUE(workloads.ok()) << workloads.status();
  std::vector<int64_t> counts;
  for (const Workload& workload : *workloads) counts.push_back(workload.count);
  // c's comment is not directly before it; d's stands behind a workload.
  EXPECT_EQ(counts, (std::vector<int64_t>{3, 12, 1, 1, 1}));
  EXPECT_EQ(PrintWorkload((*workloads)[0]), "# count 3\nworkload a() -> (y: f32[]) {\n  y[] = 0.0\n}\n");
}

TEST(Parse, LineBreaksAreSpace) {
  const Workload workload =
      Parse("workload f(x:f32[4])->(y:f32[4]){t[i]:f32[4]=x[i]*2.0 y[i]\n=\nt[i]+x[i]}");
  EXPECT_EQ(PrintWorkload(workload),
            "workload f(x: f32[4]) -> (y: f32[4]) {\n  t[i]: f32[4] = x[i] * 2.0\n  y[i] = t[i] + x[i]\n}\n");
}

TEST(Parse, ExtentsAreConstantExpressions) {
  const Workload workload =
      Parse("workload f(x: f32[1, 2*32, 7//2 + (9%4)]) -> (y: f32[]) { y[] = sum[k: 8*8](x[0,k,3]) }");
  EXPECT_EQ(workload.inputs[0].tensor->shape, (std::vector<int64_t>{1, 64, 4}));
  EXPECT_EQ(workload.stages[0].reduce_axes[0]->extent, 64);
  EXPECT_EQ(Parse("workload f(x: f32[4 - 2*3 + 9]) -> (y: f32[]) { y[] = x[0] }").inputs[0].tensor->shape[0],
            7);
}

TEST(Parse, RankZeroAndEmptyTensors) {
  const Workload workload = Parse(
      "workload f(x: f32[0,4]) -> (s: f32[], e: f32[0,4]) { s[] = sum[i:0](x[i,0]) e[i,j] = x[i,j] + s[] }");
  EXPECT_EQ(workload.outputs[0]->rank(), 0);
  EXPECT_EQ(workload.outputs[1]->num_elements(), 0);
}

TEST(Parse, OutputsMayBeReadAndStandInAnyOrder) {
  const Workload workload =
      Parse("workload f(x: f32[4]) -> (z: f32[4], y: f32[4]) { y[i] = exp(x[i]) z[i] = y[i] * 2.0 }");
  EXPECT_EQ(workload.stages[0].output, workload.outputs[1]);
  EXPECT_EQ(workload.stages[1].value->args[0]->buffer, workload.outputs[1]);
}

TEST(Parse, OperatorsBindAsInTheGrammar) {
  EXPECT_EQ(Understood("f32", "a[i] + b[i] * a[i] / b[i]"), "a[i] + b[i] * a[i] / b[i]");
  EXPECT_EQ(Understood("f32", "(a[i] + b[i]) * a[i]"), "(a[i] + b[i]) * a[i]");
  EXPECT_EQ(Understood("f32", "a[i] - (b[i] - a[i])"), "a[i] - (b[i] - a[i])");
  EXPECT_EQ(Understood("f32", "-a[i] * b[i]"), "-a[i] * b[i]");
  EXPECT_EQ(Understood("f32", "-(a[i] * b[i])"), "-(a[i] * b[i])");
  EXPECT_EQ(Understood("bool", "p[i] || p[i] && !p[i]"), "p[i] || p[i] && !p[i]");
  EXPECT_EQ(Understood("bool", "(p[i] || p[i]) && a[i] < b[i]"), "(p[i] || p[i]) && a[i] < b[i]");
  EXPECT_EQ(Understood("bool", "a[i] > b[i] && a[i] >= b[i]"), "b[i] < a[i] && b[i] <= a[i]");
  EXPECT_EQ(Understood("bool", "p[i] == (a[i] != b[i])"), "p[i] == (a[i] != b[i])");
  EXPECT_EQ(Understood("i32", "m[i] // m[i] % m[i]"), "m[i] // m[i] % m[i]");
}

TEST(Parse, UntypedLiteralsTakeTheTypeBesideThem) {
  EXPECT_EQ(Understood("f16", "h[i] * 0.5"), "h[i] * f16(0.5)");
  EXPECT_EQ(Understood("f64", "0.1 + d[i]"), "f64(0.1) + d[i]");
  EXPECT_EQ(Understood("i32", "m[i] + 3"), "m[i] + i32(3)");
  EXPECT_EQ(Understood("u8", "min(u[i], 255)"), "min(u[i], u8(255))");
  EXPECT_EQ(Understood("f16", "clamp(h[i], 0.0, 6.0)"), "clamp(h[i], f16(0.0), f16(6.0))");
  EXPECT_EQ(Understood("f16", "select(i < 4, h[i], -inf)"), "select(i < 4, h[i], f16(-inf))");
  EXPECT_EQ(Understood("bool", "d[i] < 0.1"), "d[i] < f64(0.1)");
  EXPECT_EQ(Understood("bool", "m[i] == -1"), "m[i] == i32(-1)");
  EXPECT_EQ(Understood("f64", "d[i] * (2.5)"), "d[i] * f64(2.5)");
}

TEST(Parse, UntypedLiteralsAloneTakeTheTypeOfTheStage) {
  EXPECT_EQ(Understood("f16", "0.1"), "f16(0.1)");
  EXPECT_EQ(Understood("i8", "-128"), "i8(-128)");
  const Workload workload =
      Parse("workload f() -> (y: i32[], z: i32[]) { y[] = sum[k:4](1) z[] = argmax[k:4](1.0) }");
  EXPECT_EQ(workload.stages[0].value->dtype, DType::kI32);
  EXPECT_EQ(workload.stages[1].value->dtype, DType::kF32);
}

TEST(Parse, OtherUntypedLiteralsAreF32AndI64) {
  EXPECT_EQ(Understood("f32", "exp(1.0) + (1.0 + 2.0)"), "exp(1.0) + (1.0 + 2.0)");
  EXPECT_EQ(Understood("i64", "n[i] + i * 2"), "n[i] + i * 2");
  EXPECT_EQ(Understood("f64", "f64(f32(0.1))"), "f64(f32(0.1))");
}

TEST(Parse, TypedLiteralsAndCasts) {
  EXPECT_EQ(Understood("f16", "f16(0.5)"), "f16(0.5)");
  EXPECT_EQ(Understood("f32", "f32(3)"), "3.0");
  EXPECT_EQ(Understood("f32", "f32(i)"), "f32(i)");
  EXPECT_EQ(Understood("i64", "i64(9223372036854775807) + -9223372036854775808"), "-1");
  EXPECT_EQ(Understood("u64", "18446744073709551615"), "u64(18446744073709551615)");
  EXPECT_EQ(Understood("u64", "u64(9223372036854775808) + 9223372036854775809"),
            "u64(9223372036854775808) + u64(9223372036854775809)");
  EXPECT_EQ(Understood("u32", "u32(4294967295) - 1"), "u32(4294967295) - u32(1)");
  EXPECT_EQ(Understood("i16", "-32768"), "i16(-32768)");
  EXPECT_EQ(Understood("u16", "u16(a[i])"), "u16(a[i])");
  EXPECT_EQ(Understood("f16", "f16(-inf)"), "f16(-inf)");
  EXPECT_EQ(Understood("f16", "f16((0.5))"), "f16(f32(0.5))");
  EXPECT_EQ(Understood("i32", "i32(a[i] < b[i])"), "i32(a[i] < b[i])");
  EXPECT_EQ(Understood("bool", "bool(m[i])"), "bool(m[i])");
  EXPECT_EQ(Understood("f32", "f32(true)"), "f32(true)");
}

TEST(Parse, ADecimalRoundsOnceToF64AndThenToItsType) {
  const Workload workload = Parse("workload f() -> (y: f64[], z: f32[]) { y[] = 0.1 z[] = 0.1 }");
  EXPECT_EQ(workload.stages[0].value->value.f, 0.1);
  EXPECT_EQ(workload.stages[1].value->value.f, static_cast<float>(0.1));
}

TEST(Parse, SignsAndLiterals) {
  EXPECT_EQ(Understood("f32", "-1.0"), "-1.0");
  EXPECT_EQ(Understood("f32", "-(1.0)"), "-(1.0)");
  EXPECT_EQ(Understood("f32", "--1.0"), "--1.0");
  EXPECT_EQ(Understood("f32", "a[i] - -1.0"), "a[i] - -1.0");
  EXPECT_EQ(Understood("f32", "-inf"), "-inf");
  EXPECT_EQ(Understood("f32", "nan"), "nan");
}

TEST(Parse, IndicesAreWidenedAtTheRead) {
  EXPECT_EQ(Understood("f32", "a[clamp(m[i], 0, 7)]"), "a[clamp(i64(m[i]),0,7)]");
  EXPECT_EQ(Understood("f32", "a[i64(clamp(m[i], 0, 7))]"), "a[clamp(i64(m[i]),0,7)]");
  EXPECT_EQ(Understood("f32", "a[clamp(n[i], 0, 7)]"), "a[clamp(n[i],0,7)]");
  EXPECT_EQ(Understood("f32", "a[min(max(u[i], 0), 7)]"), "a[clamp(i64(u[i]),0,7)]");
}

TEST(Parse, NamesMayRepeatAcrossKinds) {
  // An axis called like a tensor, and a workload called like both.
  EXPECT_EQ(PrintWorkload(Parse("workload x(x: f32[4]) -> (y: f32[4]) { y[x] = x[x] }")),
            "workload x(x: f32[4]) -> (y: f32[4]) {\n  y[x] = x[x]\n}\n");
}

TEST(Parse, ExactlyOneWorkloadIsExpectedByParseWorkload) {
  const std::string two = "workload a() -> (y: f32[]) { y[] = 0.0 } workload b() -> (y: f32[]) { y[] = 0.0 }";
  EXPECT_EQ(ParseWorkload(two, "here").status().message(), "here: 2 workloads; expected one");
}

TEST(Parse, ThePrintOfManyFormsIsStable) {
  const auto workloads = ParseWorkloads(R"(
# Every form of the language once.
workload forms(x: f32[2,3], h: const bf16[3], idx: i32[5], t: f32[10,4], q: i8[4], p: bool[2]) -> (y: f32[2,3], e: f32[5,4], k: i32[2]) {
  s[]: f32[] = prod[a:2, b:3](x[a,b])
  m[i]: f32[2] = max[c:3](x[i,c])
  y[i,j] = select(p[i] && !(j >= 2) || i == j, exp(x[i,j] - m[i]) / s[], f32(h[j]) ) + tf32(x[i,j])
  e[i,j] = t[clamp(idx[i], 0, 9), j] * f32(q[(i*4 + j) % 4])
  k[i] = argmin[c:3](abs(x[i,c]))
}
)",
                                        "test");
  ASSERT_TRUE(workloads.ok()) << workloads.status();
  EXPECT_TRUE(MatchesGolden("workload/forms", PrintWorkload((*workloads)[0])));
}

}  // namespace
}  // namespace mycc
