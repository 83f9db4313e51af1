#include "tests/workload/float8_cases.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"

namespace mycc {
namespace {

constexpr DType kTypes[] = {DType::kF8E4M3, DType::kF8E5M2};

std::vector<double> NumbersAroundFloat8() {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  std::vector<double> numbers = {0.0,      464,    464.5, 480,     61439,       61440,     65536,
                                 1e30,     3.4e38, 1e-40, 0x1p-10, 0x1p-17,     0x1.8p-10, 0x1.8p-17,
                                 0x1p-149, kInf,   1e300, 1e-300,  std::nan("")};
  for (const DType type : kTypes) {
    double below = 0;
    for (int bits = 1; bits < 0x80; ++bits) {
      const double value = Float8BitsToFloat(type, static_cast<uint8_t>(bits));
      if (!std::isfinite(value)) break;
      const double middle = (below + value) / 2;
      for (const double at : {value, middle}) {
        numbers.insert(numbers.end(),
                       {at, at * (1 + 0x1p-23), at * (1 - 0x1p-23), at * (1 + 0x1p-50), at * (1 - 0x1p-50)});
      }
      below = value;
    }
  }
  const size_t count = numbers.size();
  for (size_t i = 0; i < count; ++i) numbers.push_back(-numbers[i]);
  return numbers;
}

NDArray Holding(DType dtype, const std::vector<double>& numbers) {
  NDArray array = NDArray::Zeros(dtype, {static_cast<int64_t>(numbers.size())});
  for (size_t i = 0; i < numbers.size(); ++i)
    array.Set(static_cast<int64_t>(i), {RoundFloat(dtype, numbers[i]), 0});
  return array;
}

// Every pattern of a type of 1 or 2 bytes.
NDArray AllOf(DType dtype) {
  const int64_t count = int64_t{1} << (8 * DTypeBytes(dtype));
  NDArray array = NDArray::Zeros(dtype, {count});
  for (int64_t i = 0; i < count; ++i) std::memcpy(&array.bytes[i * DTypeBytes(dtype)], &i, DTypeBytes(dtype));
  return array;
}

NDArray Integers(DType dtype, int64_t count) {
  NDArray array = NDArray::Zeros(dtype, {count});
  for (int64_t i = 0; i < count; ++i)
    array.Set(i, {0, WrapInt(dtype, (i - count / 2) * (i % 3 == 0 ? 1 : 97))});
  return array;
}

Float8Case CaseOf(const std::string& text, std::vector<NDArray> inputs) {
  const absl::StatusOr<Workload> workload = ParseWorkload(text, "test");
  MYCC_CHECK(workload.ok()) << std::string(workload.status().message());
  Float8Case result{Canonicalize(*workload), std::move(inputs), {}};
  absl::StatusOr<std::vector<NDArray>> expected = RunReference(result.canonical, result.inputs);
  MYCC_CHECK(expected.ok()) << std::string(expected.status().message());
  result.expected = *std::move(expected);
  return result;
}

// y0, y1, ..: the input x cast to each type.
Float8Case CastsOf(const NDArray& x, const std::vector<DType>& to) {
  const std::string shape = absl::StrCat("[", x.num_elements(), "]");
  std::string outputs, stages;
  for (size_t i = 0; i < to.size(); ++i) {
    absl::StrAppend(&outputs, i == 0 ? "" : ", ", "y", i, ": ", DTypeName(to[i]), shape);
    absl::StrAppend(&stages, "  y", i, "[i] = ", DTypeName(to[i]), "(x[i])\n");
  }
  return CaseOf(
      absl::StrCat("workload casts(x: ", DTypeName(x.dtype), shape, ") -> (", outputs, ") {\n", stages, "}"),
      {x});
}

// Every pair of numbers.
Float8Case ArithmeticOf(DType type) {
  const std::string t = DTypeName(type), in = t + "[256]", out = t + "[256,256]";
  return CaseOf(absl::StrCat("workload pairs(x: ", in, ", y: ", in, ") -> (a: ", out, ", s: ", out,
                             ", m: ", out, ", n: ", in, ", p: ", in, ", c: ", in, ") {\n",
                             "  a[i,j] = x[i] + y[j]\n  s[i,j] = x[i] - y[j]\n  m[i,j] = x[i] * y[j]\n",
                             "  n[i] = -x[i]\n  p[i] = abs(x[i])\n  c[i] = x[i]\n}"),
                {AllOf(type), AllOf(type)});
}

}  // namespace

std::vector<Float8Case> Float8Cases() {
  const std::vector<double> numbers = NumbersAroundFloat8();
  const std::vector<DType> narrow = {DType::kF8E4M3, DType::kF8E5M2};
  std::vector<Float8Case> cases;
  cases.push_back(
      CastsOf(AllOf(DType::kF8E4M3), {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kF8E5M2,
                                      DType::kI64, DType::kI32, DType::kI8, DType::kU8, DType::kBool}));
  cases.push_back(
      CastsOf(AllOf(DType::kF8E5M2), {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3,
                                      DType::kI64, DType::kI32, DType::kI8, DType::kU8, DType::kBool}));
  cases.push_back(CastsOf(AllOf(DType::kF16), narrow));
  cases.push_back(CastsOf(AllOf(DType::kBF16), narrow));
  cases.push_back(CastsOf(Holding(DType::kF32, numbers), narrow));
  cases.push_back(CastsOf(Holding(DType::kF64, numbers), narrow));
  for (const DType type : {DType::kI64, DType::kI32, DType::kI8, DType::kU8})
    cases.push_back(CastsOf(Integers(type, 2000), narrow));
  for (const DType type : kTypes) cases.push_back(ArithmeticOf(type));
  return cases;
}

std::string Float8Steps(const Workload& canonical, const std::string& outer, const std::string& inner) {
  std::string steps;
  for (const Stage& stage : canonical.stages) {
    const std::string loop = absl::StrCat(stage.output->name, ".", stage.axes.back()->name);
    for (size_t a = 0; a + 1 < stage.axes.size() && !outer.empty(); ++a)
      absl::StrAppend(&steps, "bind(", stage.output->name, ".", stage.axes[a]->name, ", ", outer, ")\n");
    absl::StrAppend(&steps, "split(", loop, ", [16])\n");
    if (!outer.empty()) absl::StrAppend(&steps, "bind(", loop, ".0, ", outer, ")\n");
    if (!inner.empty()) absl::StrAppend(&steps, "bind(", loop, ".1, ", inner, ")\n");
  }
  return steps;
}

std::string DifferenceInBits(const std::vector<NDArray>& got, const std::vector<NDArray>& expected) {
  for (size_t o = 0; o < expected.size(); ++o) {
    const int bytes = DTypeBytes(expected[o].dtype);
    for (int64_t i = 0; i < expected[o].num_elements(); ++i) {
      const Scalar have = got[o].Get(i), want = expected[o].Get(i);
      if (IsFloat(expected[o].dtype) && std::isnan(have.f) && std::isnan(want.f)) continue;
      if (std::memcmp(&got[o].bytes[i * bytes], &expected[o].bytes[i * bytes], bytes) == 0) continue;
      return absl::StrCat("output ", o, " (", DTypeName(expected[o].dtype), "), element ", i, ": ", have.f,
                          " or ", have.i, ", expected ", want.f, " or ", want.i);
    }
  }
  return "";
}

}  // namespace mycc
