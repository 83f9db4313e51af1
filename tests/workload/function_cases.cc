#include "tests/workload/function_cases.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"

namespace mycc {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

constexpr DType kFloats[] = {DType::kF64,  DType::kF32,    DType::kF16,
                             DType::kBF16, DType::kF8E4M3, DType::kF8E5M2};
constexpr Op kUnary[] = {Op::kExp, Op::kLog,   Op::kSqrt, Op::kRsqrt, Op::kTanh, Op::kErf, Op::kSin,
                         Op::kCos, Op::kFloor, Op::kCeil, Op::kRound, Op::kAbs,  Op::kNeg};
constexpr Op kBinary[] = {Op::kAdd, Op::kSub, Op::kMul, Op::kDiv, Op::kPow, Op::kMin, Op::kMax};

std::string CallText(Op op, const std::string& a, const std::string& b) {
  switch (op) {
    case Op::kNeg: return absl::StrCat("-", a);
    case Op::kAdd: return absl::StrCat(a, " + ", b);
    case Op::kSub: return absl::StrCat(a, " - ", b);
    case Op::kMul: return absl::StrCat(a, " * ", b);
    case Op::kDiv: return absl::StrCat(a, " / ", b);
    default: return absl::StrCat(std::string(OpName(op)), "(", a, b.empty() ? "" : ", ", b, ")");
  }
}

// Bits of every exponent and sign, with mantissas that change from sweep to sweep; quiet NaNs.
double AnyNumber(DType dtype, uint64_t i, uint64_t sweep) {
  const uint64_t low = (i * 2654435761u + sweep * 40503u) * 0x9e3779b97f4a7c15;
  const double value = dtype == DType::kF32 ? std::bit_cast<float>(static_cast<uint32_t>(i << 16 | low >> 48))
                                            : std::bit_cast<double>(i << 48 | low >> 16);
  return std::isnan(value) ? std::nan("") : value;
}

// Numbers where functions curve: exponents from -8 to 7, both signs, and mantissas spread evenly over the
// sweeps.
double CurvedNumber(DType dtype, uint64_t i, uint64_t sweep, uint64_t sweeps) {
  const int exponent = static_cast<int>(i % 16) - 8;
  const double fraction =
      static_cast<double>(i / 32 * sweeps + sweep) / static_cast<double>(kFunctionElements / 32 * sweeps);
  const double value = RoundFloat(dtype, std::ldexp(1 + fraction, exponent));
  return i / 16 % 2 == 0 ? value : -value;
}

NDArray FromBits(DType dtype, const std::vector<uint64_t>& bits) {
  NDArray array = NDArray::Zeros(dtype, {kFunctionElements});
  const int bytes = DTypeBytes(dtype);
  for (int64_t i = 0; i < kFunctionElements; ++i) std::memcpy(&array.bytes[i * bytes], &bits[i], bytes);
  return array;
}

long double Exact(Op op, long double a, long double b) {
  switch (op) {
    case Op::kExp: return std::exp(a);
    case Op::kLog: return std::log(a);
    case Op::kSqrt: return std::sqrt(a);
    case Op::kRsqrt: return 1 / std::sqrt(a);
    case Op::kTanh: return std::tanh(a);
    case Op::kErf: return std::erf(a);
    case Op::kSin: return std::sin(a);
    case Op::kCos: return std::cos(a);
    case Op::kFloor: return std::floor(a);
    case Op::kCeil: return std::ceil(a);
    case Op::kRound: return std::nearbyint(a);
    case Op::kAbs: return std::fabs(a);
    case Op::kNeg: return -a;
    case Op::kAdd: return a + b;
    case Op::kSub: return a - b;
    case Op::kMul: return a * b;
    case Op::kDiv: return a / b;
    case Op::kPow: return std::pow(a, b);
    case Op::kMin: return std::isnan(a) || std::isnan(b) ? a + b : std::fmin(a, b);
    case Op::kMax: return std::isnan(a) || std::isnan(b) ? a + b : std::fmax(a, b);
    default: break;
  }
  MYCC_CHECK(false) << OpName(op) << " has no exact result here";
  return 0;
}

}  // namespace

std::vector<double> SpecialValues(DType dtype) {
  const double least = SmallestNormal(dtype), unit = UnitInLastPlace(dtype, 0);
  const double largest = LargestNumber(dtype);
  std::vector<double> values = {0,
                                kInf,
                                std::nan(""),
                                unit,
                                2 * unit,
                                least / 2,
                                least - unit,
                                least,
                                2 * least,
                                largest,
                                largest / 2,
                                1e-40,
                                1e-38,
                                1e-20,
                                1e-10,
                                1e10,
                                1e20,
                                1e38,
                                std::sqrt(largest),
                                0.25,
                                0.5,
                                0.9,
                                1,
                                1.5,
                                2,
                                2.5,
                                3,
                                4,
                                9,
                                10,
                                88.72284,
                                103.97,
                                1.57079633,
                                3.1415927,
                                100,
                                255.5,
                                1e6,
                                1e7};
  const size_t count = values.size();
  for (size_t i = 0; i < count; ++i) values.push_back(-values[i]);
  for (double& value : values) value = RoundFloat(dtype, value);
  return values;
}

std::string FunctionCase::name() const {
  return absl::StrCat(std::string(OpName(op)), "_", DTypeName(dtype));
}

Workload FunctionCase::workload() const {
  const std::string type = absl::StrCat(DTypeName(dtype), "[", kFunctionElements, "]");
  const std::string second = IsBinary(op) ? absl::StrCat(", x1: ", type) : "";
  const std::string text =
      absl::StrCat("workload ", name(), "(x0: ", type, second, ") -> (y: ", type,
                   ") {\n  y[i] = ", CallText(op, "x0[i]", IsBinary(op) ? "x1[i]" : ""), "\n}\n");
  const absl::StatusOr<Workload> workload = ParseWorkload(text, "test");
  MYCC_CHECK(workload.ok()) << std::string(workload.status().message());
  Workload canonical = Canonicalize(*workload);
  canonical.name = name();
  return canonical;
}

int FunctionCase::Sweeps(int of_wide_types) const {
  const bool is_small = DTypeBytes(dtype) == 1 || (DTypeBytes(dtype) == 2 && IsUnary(op));
  return is_small ? 1 : of_wide_types;
}

std::vector<NDArray> FunctionCase::Inputs(int sweep, int sweeps) const {
  const int bits = 8 * DTypeBytes(dtype);
  std::vector<uint64_t> first(kFunctionElements), second(kFunctionElements);
  for (int64_t i = 0; i < kFunctionElements; ++i) {
    first[i] = i;
    second[i] = bits == 8 ? i >> 8 : (i + sweep) * 0x9e3779b97f4a7c15 >> (64 - bits);
  }
  if (bits <= 16) {
    std::vector<NDArray> inputs = {FromBits(dtype, first)};
    if (IsBinary(op)) inputs.push_back(FromBits(dtype, second));
    return inputs;
  }
  NDArray a = NDArray::Zeros(dtype, {kFunctionElements}), b = a;
  const bool curved = sweep >= std::max(1, sweeps / 5);
  for (int64_t i = 0; i < kFunctionElements; ++i) {
    a.Set(i, {curved ? CurvedNumber(dtype, i, sweep, sweeps) : AnyNumber(dtype, i, sweep), 0});
    const int64_t other = i * 40503 % kFunctionElements;
    double y = curved ? CurvedNumber(dtype, other, sweep, sweeps) : AnyNumber(dtype, other, sweep + 7);
    if (op == Op::kPow && !curved) {
      // Exponents that keep the result in range, so that they test the last bits.
      const double scale = std::log2(std::fabs(a.Get(i).f));
      if (std::isfinite(scale) && scale != 0)
        y = RoundFloat(dtype, static_cast<double>(i % 251 - 125) / scale);
      if (i % 3 == 0) y = static_cast<double>(i % 7 - 3);
    }
    b.Set(i, {y, 0});
  }
  const std::vector<double> special = SpecialValues(dtype);
  int64_t at = 0;
  for (const double x : special) {
    if (!IsBinary(op)) a.Set(at++, {x, 0});
    if (!IsBinary(op)) continue;
    for (const double y : special) {
      a.Set(at, {x, 0});
      b.Set(at++, {y, 0});
    }
  }
  std::vector<NDArray> inputs = {std::move(a)};
  if (IsBinary(op)) inputs.push_back(std::move(b));
  return inputs;
}

std::vector<FunctionCase> FunctionCases() {
  std::vector<FunctionCase> cases;
  for (const DType dtype : kFloats) {
    for (const Op op : kUnary) cases.push_back({op, dtype});
    for (const Op op : kBinary) cases.push_back({op, dtype});
  }
  cases.push_back({Op::kTF32, DType::kF32});
  return cases;
}

FunctionJudge::FunctionJudge(const FunctionCase& function, std::vector<NDArray> inputs)
    : function_(function), inputs_(std::move(inputs)) {
  for (int64_t i = 0; i < kFunctionElements; ++i) {
    const double a = inputs_[0].Get(i).f, b = inputs_.size() > 1 ? inputs_[1].Get(i).f : 0;
    exact_.push_back(ExactResult(a, b));
  }
}

long double FunctionJudge::ExactResult(double a, double b) const {
  if (function_.op == Op::kTF32) return RoundToTF32(static_cast<float>(a));
  const long double exact = Exact(function_.op, a, b);
  // 8-bit floats are computed in f32: a result that overflows f32 is infinite.
  const bool overflows = IsFloat8(function_.dtype) && std::isinf(static_cast<float>(exact));
  return overflows ? std::copysign(kInf, exact) : exact;
}

double FunctionJudge::Error(int64_t i, double got) const {
  const DType dtype = function_.dtype;
  const long double exact = exact_[i];
  if (std::isnan(exact)) return std::isnan(got) ? 0 : kInf;
  if (std::isnan(got)) return kInf;
  const double rounded = RoundFloat(dtype, static_cast<double>(exact));
  if (exact == 0) {
    const bool either = function_.op == Op::kMin || function_.op == Op::kMax;
    return got == 0 && (either || std::signbit(got) == std::signbit(exact)) ? 0 : kInf;
  }
  if (got == rounded) return 0;  // or half a unit, which is always allowed
  if (std::isinf(exact)) return kInf;
  // Beyond the largest number, infinity stands where the next one would.
  const double unit = UnitInLastPlace(dtype, std::fabs(static_cast<double>(exact)));
  if (std::isinf(got)) {
    const double next = std::ldexp(1.0, std::ilogb(static_cast<double>(exact)) + 1);
    return std::signbit(got) != std::signbit(exact) ? kInf
                                                    : static_cast<double>((next - std::fabs(exact)) / unit);
  }
  if (std::isinf(rounded)) return static_cast<double>((std::fabs(exact) - std::fabs(got)) / unit);
  return static_cast<double>(std::fabs(got - exact) / unit);
}

FunctionError FunctionJudge::Judge(const NDArray& got) {
  const auto [found, is_new] = judged_.try_emplace(got.bytes);
  if (is_new) found->second = Compare(got);
  return found->second;
}

FunctionError FunctionJudge::Compare(const NDArray& got) const {
  FunctionError worst;
  for (int64_t i = 0; i < kFunctionElements; ++i) {
    const double have = got.Get(i).f, error = Error(i, have);
    if (error <= worst.ulp) continue;
    worst.ulp = error;
    std::string arguments = absl::StrFormat("%a", inputs_[0].Get(i).f);
    if (inputs_.size() > 1) arguments += absl::StrFormat(", %a", inputs_[1].Get(i).f);
    worst.at = absl::StrFormat("%s(%s) is %a, expected %a: element %d", std::string(OpName(function_.op)),
                               arguments, have, static_cast<double>(exact_[i]), i);
  }
  return worst;
}

}  // namespace mycc
