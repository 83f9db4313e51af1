// The permitted values on special inputs include the reference's, and exclude those of careless kernels.
#include "codegen/workload/permitted.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

Workload Parsed(const std::string& text) {
  const absl::StatusOr<Workload> workload = ParseWorkload(text, "test");
  EXPECT_TRUE(workload.ok()) << workload.status();
  return Canonicalize(*workload);
}

// The first fault, by the first workload's rules, in the second one's outputs for the same inputs; empty:
// none.
std::string Forbidden(const std::string& meant, const std::string& computed) {
  const Workload workload = Parsed(meant);
  const std::vector<NDArray> inputs = SpecialInputs(workload, 5);
  const auto outputs = RunReference(Parsed(computed), inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  PermittedReference reference(workload, StoredElements(inputs));
  const PermittedValues permitted = PermitOutput(workload, &reference, 0, 512, 10, 1);
  return FirstForbidden(permitted, (*outputs)[0].bytes.data());
}

std::string Elementwise(const std::string& type, const std::string& value) {
  return "workload w(x: " + type + "[3000], s: " + type + "[3000]) -> (y: " + type +
         "[3000]) { y[i] = " + value + " + 0.0 * s[i] }";
}

const char* const kSound[] = {
    "workload w(x: f32[64,64]) -> (y: f32[64,64]) { y[i,j] = 0.5 * x[i,j] * (1.0 + erf(x[i,j] * 0.70710678)) "
    "}",
    "workload w(x: f16[64,64]) -> (y: f16[64,64]) { y[i,j] = x[i,j] / (1.0 + exp(-x[i,j])) }",
    "workload w(x: bf16[64,64], z: bf16[64,64]) -> (y: bf16[64,64]) { y[i,j] = pow(abs(x[i,j]), z[i,j]) }",
    "workload w(x: f8e5m2[64,64]) -> (y: f8e5m2[64,64]) { y[i,j] = tanh(sin(x[i,j]) * cos(x[i,j])) }",
    R"(workload w(x: f32[200,96]) -> (y: f32[200,96]) {
  h[i]: f32[200] = max[j:96](x[i,j])
  e[i,j]: f32[200,96] = exp(x[i,j] - h[i])
  s[i]: f32[200] = sum[j:96](e[i,j])
  y[i,j] = e[i,j] / s[i] })",
    R"(workload w(x: f32[200,96]) -> (y: f32[200,96]) {
  v[i]: f32[200] = sum[j:96](x[i,j] * x[i,j])
  y[i,j] = x[i,j] * min(1000000.0, rsqrt(v[i])) })",
    R"(workload w(x: f32[190,101], g: f32[101], b: f32[101]) -> (y: f32[190,101]) {
  s[i]: f32[190] = sum[j:101](x[i,j])
  d[i,j]: f32[190,101] = x[i,j] - s[i] / 101.0
  v[i]: f32[190] = sum[j:101](d[i,j] * d[i,j])
  y[i,j] = d[i,j] * rsqrt(v[i] / 101.0 + 0.00001) * g[j] + b[j] })",
    "workload w(a: f32[40,50], b: f32[50,60]) -> (y: f32[40,60]) { y[i,j] = sum[k:50](a[i,k] * b[k,j]) }",
    "workload w(a: u8[40,50], b: i8[50,60]) -> (y: i32[40,60]) { y[i,j] = sum[k:50](i32(a[i,k]) * "
    "i32(b[k,j])) }",
    "workload w(x: f32[50,40]) -> (y: i32[50]) { y[i] = argmax[j:40](x[i,j]) }",
    "workload w(x: u64[50,40]) -> (y: i32[50]) { y[i] = argmax[j:40](x[i,j] - 8) }",
    "workload w(x: i64[50,40]) -> (y: i32[50]) { y[i] = argmin[j:40](x[i,j] * 1000000000000000) }",
    R"(workload w(x: u64[3000], y: u32[3000]) -> (z: u64[3000], f: f32[3000]) {
  z[i] = min(x[i] - 8, u64(y[i])) % 5
  f[i] = f32(x[i] - 8) })",
    "workload w(x: f32[50,40]) -> (y: f32[50]) { y[i] = prod[j:40](x[i,j] + 1.0) }",
    "workload w(x: f32[3000]) -> (y: i8[3000]) { y[i] = select(x[i] < 0.0, i8(x[i]), i8(x[i] * 2.0)) }",
    "workload w(t: f32[50,30], i: i32[11]) -> (y: f32[11,30]) { y[a,b] = t[clamp(i[a], 0, 49), b] }",
    R"(workload w(x: f32[1,8,10,10], w: f32[8,8,3,3]) -> (y: f32[1,8,10,10]) {
  p[n,c,i,j]: f32[1,8,12,12] = select(1 <= i && i < 11 && 1 <= j && j < 11, x[n,c,i-1,j-1], 0.0)
  y[n,k,i,j] = sum[c:8, r:3, s:3](p[n,c,i+r,j+s] * w[k,c,r,s]) })",
};

TEST(PermittedTest, TheReferenceIsPermitted) {
  for (const char* text : kSound) EXPECT_EQ(Forbidden(text, text), "") << text;
}

// docs/language.md, "Accuracy": such sums may have further terms that are zero for finite factors.
TEST(PermittedTest, ConvolutionsWithAStrideAndInGroupsMayMultiplyByZero) {
  EXPECT_EQ(Forbidden(R"(workload w(x: f32[81,4], w: f32[8,3,4]) -> (y: f32[40,8]) {
  y[i,k] = sum[r:3, c:4](x[i * 2 + r, c] * w[k,r,c]) })",
                      R"(workload w(x: f32[81,4], w: f32[8,3,4]) -> (y: f32[40,8]) {
  z[i,c]: f32[82,4] = select(i < 81, x[i,c], 0.0)
  p[k,r,c]: f32[8,4,4] = select(r < 3, w[k,r,c], 0.0)
  y[i,k] = sum[r:4, c:4](z[i * 2 + r, c] * p[k,r,c]) })"),
            "");
  EXPECT_EQ(Forbidden(R"(workload w(x: f32[200,8], w: f32[8,2]) -> (y: f32[200,8]) {
  y[i,k] = sum[c:2](x[i, k//2 * 2 + c] * w[k,c]) })",
                      R"(workload w(x: f32[200,8], w: f32[8,2]) -> (y: f32[200,8]) {
  p[k,c]: f32[8,8] = select(c//2 == k//2, w[k,c % 2], 0.0)
  y[i,k] = sum[c:8](x[i,c] * p[k,c]) })"),
            "");
}

TEST(PermittedTest, ConvolutionsAreNotNanWhereAllFactorsNearAreNumbers) {
  for (const std::string sum :
       {"sum[r:3, c:4](x[i * 2 + r, c] * w[k,r,c])", "sum[r:3, c:2](x[i + r, k//2 * 2 + c] * w[k,r,c])"}) {
    const std::string head = "workload w(x: f32[81,4], w: f32[4,3,4]) -> (y: f32[39,4]) { ";
    EXPECT_NE(Forbidden(head + "y[i,k] = " + sum + " }",
                        head + "s[i,k]: f32[39,4] = " + sum + " y[i,k] = s[i,k] + nan }"),
              "")
        << sum;
  }
}

TEST(PermittedTest, AnEstimateWithoutAnEyeToZeroAndInfinityIsNot) {
  for (const char* type : {"f32", "f16", "bf16"}) {
    const std::string meant = Elementwise(type, "rsqrt(x[i])");
    EXPECT_EQ(Forbidden(meant, meant), "");
    EXPECT_NE(
        Forbidden(meant, Elementwise(type, "rsqrt(x[i]) * (1.5 - 0.5 * x[i] * rsqrt(x[i]) * rsqrt(x[i]))")),
        "");
  }
}

TEST(PermittedTest, AReciprocalThatOverflowsIsNot) {
  EXPECT_NE(Forbidden(Elementwise("f32", "x[i] / x[i]"), Elementwise("f32", "x[i] * (1.0 / x[i])")), "");
}

TEST(PermittedTest, TheUpperHalfOfU64IsNotNegative) {
  const auto text = [](const std::string& value) {
    return "workload w(x: u64[3000], y: u64[3000]) -> (z: u64[3000]) { z[i] = " + value + " }";
  };
  EXPECT_EQ(Forbidden(text("max(x[i], y[i])"), text("select(x[i] < y[i], y[i], x[i])")), "");
  EXPECT_NE(Forbidden(text("max(x[i], y[i])"), text("u64(max(i64(x[i]), i64(y[i])))")), "");
  EXPECT_NE(Forbidden(text("x[i] // (y[i] + 1)"), text("u64(i64(x[i]) // i64(y[i] + 1))")), "");
}

TEST(PermittedTest, SubnormalNumbersFlushedToZeroAreNot) {
  const std::string flushed = "select(abs(x[i]) < 1.1754944e-38, 0.0, x[i])";
  EXPECT_NE(Forbidden(Elementwise("f32", "1.0 / x[i]"), Elementwise("f32", "1.0 / " + flushed)), "");
  EXPECT_NE(Forbidden(Elementwise("f32", "log(abs(x[i]))"), Elementwise("f32", "log(abs(" + flushed + "))")),
            "");
}

TEST(PermittedTest, AMaximumThatLosesNanIsNot) {
  EXPECT_NE(
      Forbidden(Elementwise("f32", "max(x[i], 0.0)"), Elementwise("f32", "select(0.0 < x[i], x[i], 0.0)")),
      "");
}

// A norm of rows whose guard sees NaN in place of infinity.
TEST(PermittedTest, ARowOfZerosThatBecomesNanIsNot) {
  const std::string head = R"(workload w(x: f32[200,96]) -> (y: f32[200,96]) {
  v[i]: f32[200] = sum[j:96](x[i,j] * x[i,j])
  y[i,j] = x[i,j] * min(1000000.0, )";
  EXPECT_NE(Forbidden(head + "rsqrt(v[i])) }",
                      head + "rsqrt(v[i]) * (1.5 - 0.5 * v[i] * rsqrt(v[i]) * rsqrt(v[i]))) }"),
            "");
}

TEST(PermittedTest, SpecialInputsLeaveMostSumsAlone) {
  const Workload product = Parsed(kSound[7]);
  const std::vector<NDArray> inputs = SpecialInputs(product, 5);
  const std::vector<NDArray> outputs = RunReference(product, inputs).value();
  int64_t finite = 0;
  for (int64_t i = 0; i < outputs[0].num_elements(); ++i) finite += std::isfinite(outputs[0].Get(i).f);
  EXPECT_GT(finite, outputs[0].num_elements() / 2);
  EXPECT_LT(finite, outputs[0].num_elements());
}

// Sums of products of inputs have a way of their own. Those of an input's copy are computed term by term.
TEST(PermittedTest, ProductsOfInputsAreAsTermByTerm) {
  const auto product = [](const std::string& type, const std::string& a, const std::string& b) {
    return Parsed(absl::StrCat("workload w(a: ", type, "[30,300], b: ", type,
                               "[300,20]) -> (y: f32[30,20]) {\n", "  c[i,k]: ", type, "[30,300] = a[i,k]\n",
                               "  y[i,j] = sum[k:300](", a, " * ", b, ")\n}"));
  };
  const auto check = [](const Workload& fast, const Workload& slow) {
    const std::vector<NDArray> inputs = SpecialInputs(fast, 7);
    PermittedReference of_fast(fast, StoredElements(inputs)), of_slow(slow, StoredElements(inputs));
    for (int64_t i = 0; i < 600; ++i) {
      const ValueSet is = of_fast.Output(0, i), expected = of_slow.Output(0, i);
      EXPECT_EQ(Describe(DType::kF32, is), Describe(DType::kF32, expected)) << "element " << i;
      EXPECT_EQ(is.nan, expected.nan);
    }
  };
  check(product("f32", "a[i,k]", "b[k,j]"), product("f32", "c[i,k]", "b[k,j]"));
  for (const std::string type : {"bf16", "f16", "f8e4m3"})
    check(product(type, "f32(a[i,k])", "f32(b[k,j])"), product(type, "f32(c[i,k])", "f32(b[k,j])"));
}

// A term that a mask hides has the weight 0, whatever it is multiplied by; without a mask, 0 * inf is NaN.
TEST(PermittedTest, MaskedTermsMayBeLeftOut) {
  const auto sum = [](const std::string& score, const std::string& term) {
    return R"(workload w(x: f32[40,40], v: f32[40,20]) -> (o: f32[40,20]) {
  c[i,j]: f32[40,40] = )" +
           score + R"(
  e[i,j]: f32[40,40] = exp(c[i,j] - 1.0)
  o[i,d] = sum[j:40]()" +
           term + ") }";
  };
  const std::string masked = "select(j <= i, min(x[i,j], 1.0), -inf)", all = "min(x[i,j], 1.0)";
  const std::string product = "e[i,j] * v[j,d]", left_out = "select(j <= i, e[i,j] * v[j,d], 0.0)";
  EXPECT_EQ(Forbidden(sum(masked, product), sum(masked, product)), "");
  EXPECT_EQ(Forbidden(sum(masked, product), sum(masked, left_out)), "");
  EXPECT_NE(Forbidden(sum(all, product), sum(all, left_out)), "");
}

// A weight may be rounded relative to another maximum, and scaled afterwards; other factors may not.
TEST(PermittedTest, WeightsMayBeRoundedAtAnotherScale) {
  const auto sum = [](const std::string& weight, const std::string& scale) {
    return R"(workload w(x: f32[40,40], v: f32[40,20]) -> (o: f32[40,20]) {
  e[i,j]: f32[40,40] = )" +
           weight + R"(
  t[i,d]: f32[40,20] = sum[j:40](f32(bf16(e[i,j] * )" +
           scale + R"()) * v[j,d])
  o[i,d] = t[i,d] / )" +
           scale + " }";
  };
  const std::string weight = "exp(min(x[i,j], 1.0) - 1.0)", other = "min(abs(x[i,j]), 1.0)";
  EXPECT_EQ(Forbidden(sum(weight, "1.0"), sum(weight, "0.7")), "");
  EXPECT_NE(Forbidden(sum(other, "1.0"), sum(other, "0.7")), "");
}

// A weight of 0 may have been positive relative to an earlier maximum: times infinity it is then infinity,
// not NaN. A normal weight may not be another one.
TEST(PermittedTest, WeightsBelowTheNormalNumbersMayBeOthers) {
  const auto sum = [](const std::string& maximum, const std::string& correction) {
    return absl::StrCat(
        "workload w(x: f32[40,40], v: f32[40,20]) -> (o: f32[40,20]) { t[i,d]: f32[40,20] = "
        "sum[j:40](exp(min(x[i,j], 1.0) - ",
        maximum, ") * v[j,d])  o[i,d] = t[i,d] * ", correction, " }");
  };
  EXPECT_EQ(Forbidden(sum("200.0", "1.0"), sum("80.0", "1.1754944e-38")), "");
  EXPECT_NE(Forbidden(sum("20.0", "1.0"), sum("20.0", "0.5")), "");
}

}  // namespace
}  // namespace mycc
