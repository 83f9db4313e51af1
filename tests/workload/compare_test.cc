// Comparing outputs with expected values, and the tolerance.
#include "codegen/workload/compare.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "codegen/workload/arg_reduction.h"
#include "codegen/workload/parse.h"
#include "codegen/workload/reference.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

template <typename T>
Comparison CompareAll(DType dtype, const std::vector<T>& want, const std::vector<T>& got,
                      const Tolerance& tolerance = {}) {
  const Expected expected{
      dtype, reinterpret_cast<const uint8_t*>(want.data()), {}, static_cast<int64_t>(want.size())};
  return Compare(expected, reinterpret_cast<const uint8_t*>(got.data()), tolerance);
}

Workload Parse(const std::string& text) {
  absl::StatusOr<Workload> workload = ParseWorkload(text, "test");
  EXPECT_TRUE(workload.ok()) << workload.status();
  return *std::move(workload);
}

TEST(CompareTest, IntegersExactly) {
  EXPECT_TRUE(CompareAll<int32_t>(DType::kI32, {1, -2, 3}, {1, -2, 3}).passed);
  const Comparison wrong =
      CompareAll<int32_t>(DType::kI32, {1, -2, 3}, {1, -2, 4}, {.of_value = 1, .of_scale = 1});
  EXPECT_FALSE(wrong.passed);
  EXPECT_EQ(wrong.first_mismatch, "element 2 is 4, expected 3");
  EXPECT_EQ(wrong.checked, 3);
}

TEST(CompareTest, TrueIsOneAndNothingElse) {
  EXPECT_TRUE(CompareAll<uint8_t>(DType::kBool, {1, 0}, {1, 0}).passed);
  EXPECT_FALSE(CompareAll<uint8_t>(DType::kBool, {1, 0}, {0xaa, 0}).passed) << "poison is not an answer";
}

TEST(CompareTest, FloatsWithinTheTolerance) {
  const Tolerance tolerance{.of_value = 1e-3, .of_scale = 0};
  EXPECT_TRUE(CompareAll<float>(DType::kF32, {1, 1000}, {1.0009f, 1000.9f}, tolerance).passed);
  const Comparison wrong = CompareAll<float>(DType::kF32, {1, 1000}, {1.002f, 1000}, tolerance);
  EXPECT_FALSE(wrong.passed);
  EXPECT_NEAR(wrong.max_abs_error, 2e-3, 1e-5);
  EXPECT_THAT(wrong.first_mismatch, HasSubstr("element 0 is 1.00199997, expected 1 within 0.001"));
}

// A softmax of 131072 numbers in f16: results of a hundred steps, and none of them is a normal number.
TEST(CompareTest, StepsOfSubnormalNumbersDoNotShrink) {
  constexpr double kStep = 0x1p-24;
  const Tolerance tolerance{.of_value = 0x1p-9, .of_scale = 0x1p-9};
  const auto half = [](double steps) { return FloatToHalfBits(static_cast<float>(steps * kStep)); };
  const std::vector<uint16_t> want = {half(100), half(128), half(0)};
  EXPECT_TRUE(CompareAll<uint16_t>(DType::kF16, want, {half(101), half(127), half(1)}, tolerance).passed);
  EXPECT_FALSE(CompareAll<uint16_t>(DType::kF16, want, {half(100), half(128), half(3)}, tolerance).passed);
}

TEST(CompareTest, CancelledSumsAreJudgedByTheTensorsScale) {
  const Tolerance tolerance{.of_value = 0, .of_scale = 1e-6};
  EXPECT_TRUE(CompareAll<float>(DType::kF32, {1e-7f, 100}, {3e-5f, 100}, tolerance).passed);
  EXPECT_FALSE(CompareAll<float>(DType::kF32, {1e-7f, 1}, {3e-5f, 1}, tolerance).passed);
}

TEST(CompareTest, NanAndInfinityStandWhereTheyAreExpected) {
  const Tolerance wide{.of_value = 1e9, .of_scale = 1e9};
  const auto one = [&wide](double want, double got) {
    return CompareAll<double>(DType::kF64, {1, want}, {1, got}, wide).passed;
  };
  EXPECT_TRUE(one(kNan, kNan));
  EXPECT_TRUE(one(kInf, kInf));
  EXPECT_FALSE(one(1, kNan)) << "NaN never passes unless the reference has it";
  EXPECT_FALSE(one(kNan, 1));
  EXPECT_FALSE(one(kInf, -kInf));
  EXPECT_FALSE(one(1, kInf));
  EXPECT_FALSE(one(kInf, 1));
}

TEST(CompareTest, SampledPlaces) {
  const std::vector<float> want = {5, 6};
  const std::vector<float> got = {0, 6, 0, 5};
  const Expected expected{DType::kF32, reinterpret_cast<const uint8_t*>(want.data()), {3, 1}, 2};
  const Comparison comparison = Compare(expected, reinterpret_cast<const uint8_t*>(got.data()), {});
  EXPECT_TRUE(comparison.passed) << comparison.first_mismatch;
  EXPECT_EQ(comparison.checked, 2);
}

// A tolerance must forgive another order of summation, and must not forgive a term too few.
TEST(ToleranceTest, ForgivesReorderingButNotAMissingTerm) {
  for (const int terms : {8, 64, 576, 4608}) {
    const std::string k = std::to_string(terms);
    const Workload workload =
        Parse("workload dot(x: f32[16," + k + "], w: f32[" + k + "]) -> (y: f32[16]) {\n" +
              "  y[i] = sum[k:" + k + "](x[i,k] * w[k])\n}\n");
    const std::vector<NDArray> inputs = RandomInputs(workload, 5);
    const auto value = [&inputs, terms](int input, int64_t i, int k) {
      return static_cast<float>(inputs[input].Get(input == 0 ? i * terms + k : k).f);
    };
    std::vector<float> exact(16), backwards(16), short_of_one(16);
    for (int i = 0; i < 16; ++i) {
      double sum = 0;
      for (int k = 0; k < terms; ++k) sum += static_cast<double>(value(0, i, k)) * value(1, i, k);
      exact[i] = static_cast<float>(sum);
      for (int k = terms; k-- > 0;) backwards[i] += value(0, i, k) * value(1, i, k);
      short_of_one[i] = static_cast<float>(sum - static_cast<double>(value(0, i, 0)) * value(1, i, 0));
    }
    const Tolerance tolerance = ToleranceOf(workload);
    EXPECT_TRUE(CompareAll(DType::kF32, exact, backwards, tolerance).passed) << terms;
    EXPECT_FALSE(CompareAll(DType::kF32, exact, short_of_one, tolerance).passed) << terms;
  }
}

// An output of 8 bits may be off by one step, and by little beside it; the sum before it is judged as one in
// f32 whose tensor cores keep 14 bits.
TEST(ToleranceTest, AnOutputOfEightBitsIsOffByOneStep) {
  const auto of = [](const std::string& type) {
    return ToleranceOf(Parse(
        "workload dot(x: f8e4m3[16,4096], w: f8e4m3[4096]) -> (y: " + type +
        "[16]) {\n  s[i]: f32[16] = sum[k:4096](f32(x[i,k]) * f32(w[k]))\n  y[i] = " + type + "(s[i])\n}\n"));
  };
  EXPECT_GT(of("f8e4m3").of_value, 0x1p-3);
  EXPECT_LT(of("f8e4m3").of_value, 0x1.1p-3);
  EXPECT_LT(of("f8e4m3").of_scale, 0x1.2p-5);
  EXPECT_GT(of("f8e5m2").of_value, 0x1p-2);
  EXPECT_LT(of("f8e5m2").of_value, 0x1.1p-2);
  EXPECT_LT(of("f64").of_scale, 0x1.1p-9);
  EXPECT_GT(of("f64").of_scale, 0x1p-9);
}

TEST(ToleranceTest, IntegersHaveNone) {
  const Tolerance tolerance =
      ToleranceOf(Parse("workload add(x: i32[8]) -> (y: i32[8]) {\n  y[i] = x[i] + x[i]\n}\n"));
  EXPECT_EQ(tolerance.of_value, 0);
  EXPECT_EQ(tolerance.of_scale, 0);
}

class ArgReductionTest : public ::testing::Test {
 protected:
  // Two columns whose difference is lost in rounding, and one that is clearly less.
  static std::vector<float> Rows() { return {1.0f, 1.0000001f, 0.5f, 0.25f, 0.125f, 2.0f}; }
  static Comparison Judge(const std::string& body, const std::vector<int32_t>& want,
                          const std::vector<int32_t>& got) {
    const Workload workload = Parse("workload pick(x: f32[2,3]) -> (y: i32[2]) {\n" + body + "}\n");
    const std::vector<float> rows = Rows();
    const std::vector<const uint8_t*> inputs = {reinterpret_cast<const uint8_t*>(rows.data())};
    ArgReduction judge(workload, workload.outputs[0], inputs);
    const Expected expected{DType::kI32, reinterpret_cast<const uint8_t*>(want.data()), {}, 2};
    return Compare(expected, reinterpret_cast<const uint8_t*>(got.data()), {}, judge.excuse());
  }
};

TEST_F(ArgReductionTest, ComputedValuesAreJudgedByValue) {
  const std::string body = "  y[i] = argmax[k:3](x[i,k] * 0.3)\n";
  EXPECT_TRUE(Judge(body, {1, 2}, {0, 2}).passed) << "equal but for rounding";
  EXPECT_FALSE(Judge(body, {1, 2}, {2, 2}).passed);
  EXPECT_FALSE(Judge(body, {1, 2}, {1, -1431655766}).passed) << "poison";
}

TEST_F(ArgReductionTest, InputsAreJudgedExactly) {
  const std::string body = "  y[i] = argmax[k:3](x[i,k])\n";
  EXPECT_TRUE(Judge(body, {1, 2}, {1, 2}).passed);
  EXPECT_FALSE(Judge(body, {1, 2}, {0, 2}).passed);
}

}  // namespace
}  // namespace mycc
