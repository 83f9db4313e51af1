// Every operation in compiled code, scalar and in vectors of each width, is as exact as the language says.
#include <cfenv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/llvm/compiled.h"
#include "tests/llvm/jit.h"
#include "tests/schedule/testing.h"
#include "tests/workload/function_cases.h"

namespace mycc {
namespace {

// Lanes of the vectors: 1 is scalar code; what is wider than a target's registers becomes several of them.
constexpr int kLanes[] = {1, 2, 4, 8, 16};

// Makes lanes of the only loop of `output`.
std::string Steps(const std::string& output, int lanes) {
  if (lanes == 1) return "";
  return absl::StrCat("split(", output, ".a0, [", lanes, "])\nbind(", output, ".a0.1, vector)\n");
}

std::unique_ptr<JitKernel> Compiled(const Workload& canonical, int lanes, const Target& target) {
  const auto lowered = LowerTrace(canonical, Steps(canonical.outputs[0]->name, lanes), target);
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  auto kernel = JitKernel::Compile(*lowered, target);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return *std::move(kernel);
}

class FunctionsTest : public testing::TestWithParam<FunctionCase> {};

TEST_P(FunctionsTest, IsAsExactAsTheLanguageSays) {
  const FunctionCase& function = GetParam();
  const double bound = AccuracyOf(function.op, function.dtype).cpu;
  const int sweeps = function.Sweeps(function.dtype == DType::kF32 ? 20 : 4);
  std::vector<FunctionJudge> judges;
  judges.reserve(sweeps);
  for (int sweep = 0; sweep < sweeps; ++sweep) judges.emplace_back(function, function.Inputs(sweep, sweeps));
  for (const Target& target : RunnableTargets()) {
    for (const int lanes : kLanes) {
      const auto kernel = Compiled(function.workload(), lanes, target);
      FunctionError worst;
      // Widths between the narrowest and the widest have the same instructions.
      const int step = lanes == 1 || lanes == 16 ? 1 : 10;
      for (int sweep = 0; sweep < sweeps; sweep += step) {
        const FunctionError error = judges[sweep].Judge(kernel->Run(judges[sweep].inputs())[0]);
        if (error.ulp > worst.ulp) worst = error;
      }
      EXPECT_LE(worst.ulp, bound) << worst.at << " on " << target.mcpu << " in " << lanes << " lanes";
      RecordProperty(absl::StrCat(target.mcpu, "_", lanes), absl::StrCat(worst.ulp));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, FunctionsTest, testing::ValuesIn(FunctionCases()),
                         [](const auto& info) { return info.param.name(); });

// A masked score is -inf or a large negative number. Its exponential is zero without an underflow, which
// processors take a hundred times as long for.
TEST(ExponentialTest, OfNumbersFarBelowZeroDoesNotUnderflow) {
  const std::string shape = absl::StrCat("f32[", kFunctionElements, "]");
  const Workload canonical = CanonicalWorkload(
      absl::StrCat("workload w(x: ", shape, ") -> (y: ", shape, ") {\n  y[i] = exp(x[i])\n}\n"));
  const double numbers[] = {-HUGE_VAL, 0, -1e4, -104.01, 1, -3e38};
  NDArray x = NDArray::Zeros(DType::kF32, {kFunctionElements});
  for (int64_t i = 0; i < kFunctionElements; ++i) x.Set(i, {numbers[i % 6], 0});
  for (const Target& target : RunnableTargets()) {
    for (const int lanes : kLanes) {
      const auto kernel = Compiled(canonical, lanes, target);
      kernel->Bind({x});
      std::feclearexcept(FE_ALL_EXCEPT);
      kernel->Call();
      EXPECT_EQ(std::fetestexcept(FE_UNDERFLOW), 0) << target.mcpu << " in " << lanes << " lanes";
    }
  }
}

// Lanes that are divided by one number are multiplied by its reciprocal where that is a normal number.
class DivisionTest : public testing::TestWithParam<DType> {};

TEST_P(DivisionTest, ByOneNumberIsAsExactAsByMany) {
  const FunctionCase division{Op::kDiv, GetParam()};
  const std::string type = DTypeName(division.dtype), shape = absl::StrCat(type, "[", kFunctionElements, "]");
  const Workload canonical = CanonicalWorkload(absl::StrCat(
      "workload w(x: ", shape, ", s: ", type, "[]) -> (y: ", shape, ") {\n  y[i] = x[i] / s[]\n}\n"));
  const NDArray x = FunctionCase{Op::kExp, division.dtype}.Inputs(0, 1)[0];
  std::vector<std::unique_ptr<JitKernel>> kernels;
  for (const Target& target : RunnableTargets()) kernels.push_back(Compiled(canonical, 16, target));
  for (const double divisor : SpecialValues(division.dtype)) {
    NDArray s = NDArray::Zeros(division.dtype, {}), filled = x;
    s.Set(0, {divisor, 0});
    for (int64_t i = 0; i < kFunctionElements; ++i) filled.Set(i, {divisor, 0});
    FunctionJudge judge(division, {x, filled});
    for (size_t k = 0; k < kernels.size(); ++k) {
      const FunctionError error = judge.Judge(kernels[k]->Run({x, s})[0]);
      EXPECT_LE(error.ulp, AccuracyOf(Op::kDiv, division.dtype).cpu)
          << error.at << " on " << RunnableTargets()[k].mcpu;
    }
  }
}

TEST_P(DivisionTest, ByAConstantIsAsExact) {
  const FunctionCase division{Op::kDiv, GetParam()};
  const std::string type = DTypeName(division.dtype), shape = absl::StrCat(type, "[", kFunctionElements, "]");
  const NDArray x = FunctionCase{Op::kExp, division.dtype}.Inputs(0, 1)[0];
  for (const char* divisor : {"0.0", "3.0", "-0.125", "inf", "nan", "0.0000004"}) {
    const Workload canonical = CanonicalWorkload(absl::StrCat(
        "workload w(x: ", shape, ") -> (y: ", shape, ") {\n  y[i] = x[i] / ", type, "(", divisor, ")\n}\n"));
    NDArray filled = x;
    const double value = RoundFloat(division.dtype, std::strtod(divisor, nullptr));
    for (int64_t i = 0; i < kFunctionElements; ++i) filled.Set(i, {value, 0});
    const FunctionError error = FunctionJudge(division, {x, filled})
                                    .Judge(Compiled(canonical, 16, RunnableTargets().back())->Run({x})[0]);
    EXPECT_LE(error.ulp, AccuracyOf(Op::kDiv, division.dtype).cpu) << error.at;
  }
}

INSTANTIATE_TEST_SUITE_P(All, DivisionTest,
                         testing::Values(DType::kF64, DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& info) { return DTypeName(info.param); });

// An error of one unit would give another integer next to a tie.
TEST(DivisionTest, QuotientsThatAreRoundedAreExact) {
  const std::string shape = absl::StrCat("f32[", kFunctionElements, "]");
  const Workload canonical = CanonicalWorkload(absl::StrCat(
      "workload w(x: ", shape, ", s: f32[]) -> (y: ", shape, ") {\n  y[i] = round(x[i] / s[])\n}\n"));
  const float divisor = 5.0f / 255;
  NDArray x = NDArray::Zeros(DType::kF32, {kFunctionElements}), s = NDArray::Zeros(DType::kF32, {});
  s.Set(0, {divisor, 0});
  for (int64_t i = 0; i < kFunctionElements; ++i)
    x.Set(i, {static_cast<float>(static_cast<double>(i % 511 - 255) / 2 * divisor), 0});
  for (const Target& target : RunnableTargets()) {
    const NDArray y = Compiled(canonical, 16, target)->Run({x, s})[0];
    for (int64_t i = 0; i < kFunctionElements; ++i) {
      const float quotient = static_cast<float>(x.Get(i).f) / divisor;
      ASSERT_EQ(y.Get(i).f, std::nearbyint(quotient)) << x.Get(i).f << " on " << target.mcpu;
    }
  }
}

TEST(DivisionTest, QuotientsOfQuotientsThatAreRoundedAreExact) {
  const std::string shape = absl::StrCat("f32[", kFunctionElements, "]");
  const Workload canonical = CanonicalWorkload(absl::StrCat("workload w(x: ", shape, ") -> (y: ", shape,
                                                            ") {\n  y[i] = floor(x[i] / 3.0 / 0.1)\n}\n"));
  NDArray x = NDArray::Zeros(DType::kF32, {kFunctionElements});
  for (int64_t i = 0; i < kFunctionElements; ++i) x.Set(i, {static_cast<float>(0.1 * (i % 1001 - 500)), 0});
  for (const Target& target : RunnableTargets()) {
    const NDArray y = Compiled(canonical, 16, target)->Run({x})[0];
    for (int64_t i = 0; i < kFunctionElements; ++i) {
      const float third = static_cast<float>(x.Get(i).f) / 3.0f, quotient = third / 0.1f;
      ASSERT_EQ(y.Get(i).f, std::floor(quotient)) << x.Get(i).f << " on " << target.mcpu;
    }
  }
}

// 1 / sqrt(x) may be rsqrt(x), which is as exact as the two steps.
TEST(DivisionTest, ByARoot) {
  const std::string shape = absl::StrCat("f32[", kFunctionElements, "]");
  const Workload canonical = CanonicalWorkload(
      absl::StrCat("workload w(x: ", shape, ") -> (y: ", shape, ") {\n  y[i] = 1.0 / sqrt(x[i])\n}\n"));
  const FunctionCase rsqrt{Op::kRsqrt, DType::kF32};
  FunctionJudge judge(rsqrt, rsqrt.Inputs(0, 1));
  for (const Target& target : RunnableTargets()) {
    for (const int lanes : kLanes) {
      const FunctionError error = judge.Judge(Compiled(canonical, lanes, target)->Run(judge.inputs())[0]);
      EXPECT_LE(error.ulp, AccuracyOf(Op::kRsqrt, DType::kF32).cpu) << error.at << " on " << target.mcpu;
    }
  }
}

}  // namespace
}  // namespace mycc
