#include "codegen/workload/compare.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mycc {
namespace {

// Relative errors are not computed against values below this share of the tensor's scale: sums that cancel
// have large ones.
constexpr double kSmall = 1e-2;

// The largest finite magnitude expected in the tensor, but at least the smallest normal number.
double ScaleOf(const Expected& expected) {
  double scale = SmallestNormal(expected.dtype);
  const int width = DTypeBytes(expected.dtype);
  for (int64_t i = 0; i < expected.count; ++i) {
    const double value = std::abs(LoadScalar(expected.dtype, expected.values + i * width).f);
    if (std::isfinite(value)) scale = std::max(scale, value);
  }
  return scale;
}

}  // namespace

// The sign of a NaN has no meaning.
std::string PrintNumber(double value) { return std::isnan(value) ? "nan" : absl::StrFormat("%.9g", value); }

std::string DescribeMismatch(DType dtype, int64_t place, const void* want, const void* have, double allowed) {
  const Scalar expected = LoadScalar(dtype, want), got = LoadScalar(dtype, have);
  const std::string where = absl::StrCat("element ", place, " is ");
  if (dtype == DType::kBool)
    return absl::StrCat(where, *static_cast<const uint8_t*>(have), ", expected ", expected.i);
  if (!IsFloat(dtype))
    return absl::StrCat(where, PrintInt(dtype, got.i), ", expected ", PrintInt(dtype, expected.i));
  const std::string text = absl::StrCat(where, PrintNumber(got.f), ", expected ", PrintNumber(expected.f));
  const bool finite = std::isfinite(expected.f) && std::isfinite(got.f);
  return finite ? absl::StrCat(text, " within ", PrintNumber(allowed)) : text;
}

Comparison Compare(const Expected& expected, const uint8_t* got, const Tolerance& tolerance,
                   const Excuse& excuse) {
  Comparison result;
  const int width = DTypeBytes(expected.dtype);
  const bool is_float = IsFloat(expected.dtype);
  const double scale = is_float ? ScaleOf(expected) : 0;
  for (int64_t i = 0; i < expected.count; ++i) {
    const int64_t place = expected.places.empty() ? i : expected.places[i];
    double allowed = 0;
    const auto fail = [&] {
      if (result.passed) {
        result.first_mismatch = DescribeMismatch(expected.dtype, place, expected.values + i * width,
                                                 got + place * width, allowed);
      }
      result.passed = false;
    };
    const Scalar want = LoadScalar(expected.dtype, expected.values + i * width);
    Scalar have = LoadScalar(expected.dtype, got + place * width);
    if (expected.dtype == DType::kBool) have.i = got[place];  // only 1 is true
    ++result.checked;
    if (!is_float) {
      if (have.i == want.i || (excuse && excuse(place, have.i, want.i))) continue;
      result.max_abs_error = std::max(result.max_abs_error, std::abs(IntToDouble(expected.dtype, have.i) -
                                                                     IntToDouble(expected.dtype, want.i)));
      fail();
      continue;
    }
    if (!std::isfinite(want.f) || !std::isfinite(have.f)) {
      const bool same = (std::isnan(want.f) && std::isnan(have.f)) || have.f == want.f;
      if (!same) fail();
      continue;
    }
    const double error = std::abs(have.f - want.f);
    allowed = tolerance.of_value * std::abs(want.f) + tolerance.of_scale * scale;
    result.max_abs_error = std::max(result.max_abs_error, error);
    const double magnitude = std::max(std::abs(want.f), kSmall * scale);
    if (magnitude > 0) result.max_rel_error = std::max(result.max_rel_error, error / magnitude);
    if (error > allowed) fail();
  }
  return result;
}

}  // namespace mycc
