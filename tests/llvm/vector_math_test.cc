// The inline elementary functions against libm in double precision, over all exponents and special values,
// scalar and in lanes.
#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "codegen/library/reference_kernel.h"
#include "gtest/gtest.h"
#include "tests/llvm/compiled.h"
#include "tests/llvm/jit.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

constexpr int64_t kCount = 1 << 16;

struct Function1 {
  const char* name;
  double (*exact)(double);
  double max_ulp;
  double max_ulp_without_fma;
  double max_ulp_avx512;

  double Bound(const CpuFeatures& features) const {
    return features.avx512f ? max_ulp_avx512 : features.fma ? max_ulp : max_ulp_without_fma;
  }
};

const Function1 kFunctions[] = {
    {"exp", std::exp, 1, 1.2, 1}, {"log", std::log, 1, 1, 1}, {"tanh", std::tanh, 3, 3, 1.5},
    {"erf", std::erf, 3, 3, 2.5}, {"sin", std::sin, 2, 2, 2}, {"cos", std::cos, 2, 2, 2},
};

// Units in the last place of the float nearest to `exact`.
double UlpError(float actual, double exact) {
  const auto nearest = static_cast<float>(exact);
  if (std::isnan(exact)) return std::isnan(actual) ? 0 : INFINITY;
  if (std::isinf(nearest) || std::isinf(actual)) {
    return actual == nearest || std::fabs(exact) > 3.4028235e38 || std::fabs(actual) > 3.4028233e38
               ? 0
               : INFINITY;
  }
  const int exponent = std::max(std::ilogb(nearest == 0 ? 1e-45 : nearest), -126);
  return std::fabs(actual - exact) / std::ldexp(1.0, exponent - 23);
}

// Every exponent and sign, with mantissas that change from call to call.
NDArray Floats(uint32_t salt) {
  NDArray array = NDArray::Zeros(DType::kF32, {kCount});
  for (uint32_t i = 0; i < kCount; ++i) {
    const uint32_t bits = (i << 16) | ((i * 2654435761u + salt * 40503u) >> 16);
    array.Set(i, Scalar{std::bit_cast<float>(bits), 0});
  }
  const float special[] = {0.0f,   -0.0f,         INFINITY,  -INFINITY, NAN,  1.0f,  -1.0f,
                           1e-45f, 3.4028235e38f, 88.72284f, -103.97f,  0.9f, -0.9f, 2.0f};
  for (size_t i = 0; i < std::size(special); ++i) array.Set(static_cast<int64_t>(i), Scalar{special[i], 0});
  return array;
}

// Where the functions curve: exponents from -8 to 7, both signs, and mantissas spread evenly over all calls.
NDArray CurvedFloats(uint32_t salt, uint32_t salts) {
  NDArray array = NDArray::Zeros(DType::kF32, {kCount});
  for (uint32_t i = 0; i < kCount; ++i) {
    const uint32_t exponent = 127 - 8 + i % 16, sign = i / 16 % 2;
    const uint32_t mantissa = static_cast<uint32_t>((uint64_t{i / 32} * salts + salt) * (uint64_t{1} << 23) /
                                                    (uint64_t{kCount / 32} * salts));
    array.Set(i, Scalar{std::bit_cast<float>(sign << 31 | exponent << 23 | mantissa), 0});
  }
  return array;
}

std::unique_ptr<JitKernel> Compile(const std::string& text, bool lanes, const Target& target) {
  const Workload canonical = CanonicalWorkload(text);
  const auto lowered = Lower(lanes ? ReferenceFunction(canonical) : BuildNaive(canonical), target);
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  auto kernel = JitKernel::Compile(*lowered, target);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return *std::move(kernel);
}

class VectorMathTest : public testing::TestWithParam<Function1> {};

TEST_P(VectorMathTest, FollowsLibm) {
  const Function1& function = GetParam();
  const std::string text = absl::StrCat("workload w(x: f32[", kCount, "]) -> (y: f32[", kCount,
                                        "]) { y[i] = ", function.name, "(x[i]) }");
  for (const Target& target : RunnableTargets()) {
    for (const bool lanes : {false, true}) {
      const auto kernel = Compile(text, lanes, target);
      double worst = 0;
      float worst_at = 0;
      const uint32_t salts = lanes ? 40 : 2;
      for (uint32_t salt = 0; salt < salts; ++salt) {
        const NDArray x = salt < salts / 5 ? Floats(salt) : CurvedFloats(salt, salts);
        const NDArray y = kernel->Run({x})[0];
        for (int64_t i = 0; i < kCount; ++i) {
          const double error = UlpError(static_cast<float>(y.Get(i).f), function.exact(x.Get(i).f));
          if (error <= worst) continue;
          worst = error;
          worst_at = static_cast<float>(x.Get(i).f);
        }
      }
      EXPECT_LE(worst, function.Bound(FeaturesOf(target)))
          << function.name << "(" << worst_at << ") on " << target.mcpu << (lanes ? " in lanes" : "");
      RecordProperty(absl::StrCat(function.name, lanes ? "_lanes_" : "_", target.mcpu), absl::StrCat(worst));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, VectorMathTest, testing::ValuesIn(kFunctions),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(VectorMathTest, Pow) {
  const std::string text = absl::StrCat("workload w(x: f32[", kCount, "], y: f32[", kCount, "]) -> (z: f32[",
                                        kCount, "]) { z[i] = pow(x[i], y[i]) }");
  const auto kernel = Compile(text, /*lanes=*/true, AvxTarget());
  const float special[] = {0.0f, -0.0f, 1.0f,     -1.0f,     2.0f, -2.0f, 3.0f,   -3.0f,
                           0.5f, -0.5f, INFINITY, -INFINITY, NAN,  1e30f, -1e30f, 33554432.0f};
  NDArray x = Floats(1), y = NDArray::Zeros(DType::kF32, {kCount});
  for (int64_t i = 0; i < kCount; ++i) {
    // Exponents that keep the result in range, so that they test the last bits.
    const double scale = std::log2(std::fabs(x.Get(i).f));
    y.Set(i, Scalar{static_cast<float>(i % 251 - 125) /
                        (std::isfinite(scale) && scale != 0 ? static_cast<float>(scale) : 1),
                    0});
    if (i % 3 == 0) y.Set(i, Scalar{static_cast<double>(i % 7 - 3), 0});
  }
  int64_t at = 0;
  for (const float a : special) {
    for (const float b : special) {
      x.Set(at, Scalar{a, 0});
      y.Set(at++, Scalar{b, 0});
    }
  }
  const NDArray z = kernel->Run({x, y})[0];
  for (int64_t i = 0; i < kCount; ++i) {
    const double exact = std::pow(x.Get(i).f, y.Get(i).f);
    ASSERT_LE(UlpError(static_cast<float>(z.Get(i).f), exact), 2)
        << "pow(" << x.Get(i).f << ", " << y.Get(i).f << ") = " << z.Get(i).f;
  }
}

}  // namespace
}  // namespace mycc
