#include "tests/workload/conversion_cases.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"

namespace mycc {
namespace {

constexpr DType kFloat8[] = {DType::kF8E4M3, DType::kF8E5M2};
const std::vector<DType> kTypes = {DType::kF64,  DType::kF32, DType::kF16, DType::kBF16,   DType::kI64,
                                   DType::kI32,  DType::kI8,  DType::kU8,  DType::kF8E4M3, DType::kF8E5M2,
                                   DType::kBool, DType::kI16, DType::kU16, DType::kU32,    DType::kU64};

// Positive numbers of a type of 8 or 16 bits, every `step`-th one, what is in the middle between two, and
// what is right beside both.
void AddNumbersAround(DType type, int step, std::vector<double>* numbers) {
  double below = 0;
  const auto number = [type](int bits) {
    const uint16_t stored = static_cast<uint16_t>(bits);
    return LoadScalar(type, &stored).f;
  };
  for (int bits = 1; std::isfinite(number(bits)); ++bits) {
    const double value = number(bits), middle = (below + value) / 2;
    below = value;
    if (bits % step != 0 && std::isfinite(number(bits + 1))) continue;
    for (const double at : {value, middle}) {
      numbers->insert(numbers->end(),
                      {at, at * (1 + 0x1p-23), at * (1 - 0x1p-23), at * (1 + 0x1p-50), at * (1 - 0x1p-50)});
    }
  }
}

// The ends of the integers, what 8 and 16 bits leave between their numbers, and what is beyond either.
std::vector<double> NumbersAtEdges() {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  std::vector<double> numbers = {
      0.0,        464,        464.5,   480,    61439,  61440,   65504,   65519.99,    65520,     65536,
      1e30,       3.4e38,     3.39e38, 1e-40,  1e-45,  0x1p-10, 0x1p-17, 0x1.8p-10,   0x1.8p-17, 0x1p-149,
      0x1.8p-149, 0x1p-150,   kInf,    1e300,  1e-300, 0.5,     0.99999, 1.5,         126.5,     127,
      127.5,      128,        128.5,   129,    254.5,  255,     255.5,   256,         32767.5,   0x1p31,
      0x1p31 - 1, 0x1p31 + 1, 0x1p32,  0x1p53, 0x1p62, 0x1p63,  0x1p64,  std::nan("")};
  for (const DType type : kFloat8) AddNumbersAround(type, 1, &numbers);
  for (const DType type : {DType::kF16, DType::kBF16}) AddNumbersAround(type, 37, &numbers);
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
  // Both ends, and what floats of 24 and of 53 bits round.
  int64_t at = 0;
  for (const int64_t edge : {int64_t{0}, int64_t{1} << 24, int64_t{1} << 31, int64_t{1} << 53, INT64_MAX}) {
    for (const int64_t beside : {-1, 0, 1}) {
      const int64_t value = static_cast<int64_t>(static_cast<uint64_t>(edge) + static_cast<uint64_t>(beside));
      array.Set(at++, {0, WrapInt(dtype, value)});
      array.Set(at++, {0, WrapInt(dtype, static_cast<int64_t>(-static_cast<uint64_t>(value)))});
    }
  }
  return array;
}

ConversionCase CaseOf(const std::string& text, std::vector<NDArray> inputs) {
  const absl::StatusOr<Workload> workload = ParseWorkload(text, "test");
  MYCC_CHECK(workload.ok()) << std::string(workload.status().message());
  ConversionCase result{Canonicalize(*workload), std::move(inputs), {}};
  absl::StatusOr<std::vector<NDArray>> expected = RunReference(result.canonical, result.inputs);
  MYCC_CHECK(expected.ok()) << std::string(expected.status().message());
  result.expected = *std::move(expected);
  return result;
}

// y0, y1, ..: the input x cast to each type.
ConversionCase CastsOf(const NDArray& x, const std::vector<DType>& to) {
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
ConversionCase ArithmeticOf(DType type) {
  const std::string t = DTypeName(type), in = t + "[256]", out = t + "[256,256]";
  return CaseOf(absl::StrCat("workload pairs(x: ", in, ", y: ", in, ") -> (a: ", out, ", s: ", out,
                             ", m: ", out, ", n: ", in, ", p: ", in, ", c: ", in, ") {\n",
                             "  a[i,j] = x[i] + y[j]\n  s[i,j] = x[i] - y[j]\n  m[i,j] = x[i] * y[j]\n",
                             "  n[i] = -x[i]\n  p[i] = abs(x[i])\n  c[i] = x[i]\n}"),
                {AllOf(type), AllOf(type)});
}

}  // namespace

std::vector<ConversionCase> ConversionCases() {
  const std::vector<double> numbers = NumbersAtEdges();
  std::vector<ConversionCase> cases;
  for (const DType type : kTypes) {
    std::vector<DType> others;
    std::ranges::copy_if(kTypes, std::back_inserter(others), [&](DType to) { return to != type; });
    if (IsInt(type)) {
      cases.push_back(CastsOf(Integers(type, 2000), others));
    } else if (DTypeBytes(type) <= 2 && type != DType::kBool) {
      cases.push_back(CastsOf(AllOf(type), others));
    } else if (type != DType::kBool) {
      cases.push_back(CastsOf(Holding(type, numbers), others));
    }
  }
  for (const DType type : kFloat8) cases.push_back(ArithmeticOf(type));
  return cases;
}

std::string ConversionSteps(const Workload& canonical, const std::string& outer, const std::string& inner) {
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
