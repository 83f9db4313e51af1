// Rounds to narrow floats by exact operations on doubles and bits, so that results are the same on every
// machine.
#include "codegen/expr/dtype.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace mycc {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The format of a float: a sign, an exponent and `mantissa_bits`. Rounding turns a finite number beyond `max`
// into `overflow`, and infinity into `of_infinity`.
struct FloatFormat {
  int mantissa_bits = 0, min_exponent = 0;
  double max = 0, overflow = kInfinity, of_infinity = kInfinity;
};

struct DTypeInfo {
  std::string_view name;
  int bytes;
  FloatFormat format;  // without mantissa bits: no float
};

constexpr DTypeInfo kDTypes[kNumDTypes] = {
    {"f64", 8, {52, -1022, std::numeric_limits<double>::max()}},
    {"f32", 4, {23, -126, std::numeric_limits<float>::max()}},
    {"f16", 2, {10, -14, 65504}},
    {"bf16", 2, {7, -126, 0x1.fep127}},
    {"i64", 8},
    {"i32", 4},
    {"i8", 1},
    {"u8", 1},
    {"bool", 1},
    {"f8e4m3", 1, {3, -6, 448, 448, 448}},
    {"f8e5m2", 1, {2, -14, 57344, 57344}},
    {"i16", 2},
    {"u16", 2},
    {"u32", 4},
    {"u64", 8},
};

const DTypeInfo& Info(DType dtype) { return kDTypes[static_cast<int>(dtype)]; }

const FloatFormat& FormatOf(DType dtype) {
  MYCC_CHECK(IsFloat(dtype)) << DTypeName(dtype) << " is no float";
  return Info(dtype).format;
}

double RoundToFormat(const FloatFormat& format, double value) {
  if (value == 0 || std::isnan(value)) return value;
  if (std::isinf(value)) return std::copysign(format.of_infinity, value);
  constexpr int kMantissa = 52, kBias = 1023, kHuge = 512;  // of a double; beyond the narrower formats
  const int own = static_cast<int>(std::bit_cast<uint64_t>(value) >> kMantissa & 0x7ff) - kBias;
  if (own >= kHuge) return std::copysign(format.overflow, value);
  // The sum with a number whose last bit has the weight of the format's last bit is rounded there, to even.
  const int exponent = std::max(own, format.min_exponent) + kMantissa - format.mantissa_bits;
  const double aligned = 1.5 * std::bit_cast<double>(static_cast<uint64_t>(exponent + kBias) << kMantissa);
  const double rounded = std::copysign((value + aligned) - aligned, value);
  return std::fabs(rounded) > format.max ? std::copysign(format.overflow, value) : rounded;
}

int64_t SaturateToInt(DType to, double value) {
  if (std::isnan(value)) return 0;
  // The largest numbers of 64 bits are no doubles. They become 2^63 and 2^64, the first ones beyond the
  // ranges.
  const auto [lowest, highest] = RangeOfInt(to);
  if (value >= IntToDouble(to, highest)) return highest;
  if (value <= IntToDouble(to, lowest)) return lowest;
  return to == DType::kU64 ? static_cast<int64_t>(static_cast<uint64_t>(value)) : static_cast<int64_t>(value);
}

double IntToFloat(DType to, DType from, int64_t value) {
  if (to == DType::kF64) return IntToDouble(from, value);
  // Bits that do not fit a double become one sticky bit, so that only the rounding to the narrow type counts.
  constexpr int64_t kLow = 0xfff;
  const bool is_large = from == DType::kU64 && value < 0;
  if (is_large || value > (int64_t{1} << 53) || value < -(int64_t{1} << 53)) {
    value = (value & ~kLow) | ((value & kLow) != 0 ? 0x800 : 0);
  }
  return RoundFloat(to, IntToDouble(from, value));
}

template <typename T>
T LoadAs(const void* address) {
  T value;
  std::memcpy(&value, address, sizeof(T));
  return value;
}

int64_t LoadInt(DType dtype, const void* address) {
  int64_t bits = 0;
  std::memcpy(&bits, address, DTypeBytes(dtype));
  return WrapInt(dtype, bits);
}

template <typename T>
void StoreAs(void* address, T value) {
  std::memcpy(address, &value, sizeof(T));
}

}  // namespace

std::string DTypeName(DType dtype) { return std::string(Info(dtype).name); }

std::optional<DType> ParseDType(std::string_view name) {
  const DTypeInfo* found = std::ranges::find(kDTypes, name, &DTypeInfo::name);
  return found != std::end(kDTypes) ? std::optional(static_cast<DType>(found - kDTypes)) : std::nullopt;
}

int DTypeBytes(DType dtype) { return Info(dtype).bytes; }
bool IsFloat(DType dtype) { return Info(dtype).format.mantissa_bits > 0; }
bool IsInt(DType dtype) { return !IsFloat(dtype) && dtype != DType::kBool; }
bool IsUnsigned(DType dtype) {
  return dtype == DType::kU8 || dtype == DType::kU16 || dtype == DType::kU32 || dtype == DType::kU64 ||
         dtype == DType::kBool;
}
bool IsNarrowFloat(DType dtype) { return IsFloat(dtype) && DTypeBytes(dtype) < 4; }
bool IsFloat8(DType dtype) { return dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2; }

double IntToDouble(DType dtype, int64_t value) {
  return dtype == DType::kU64 ? static_cast<double>(static_cast<uint64_t>(value))
                              : static_cast<double>(value);
}

std::string PrintInt(DType dtype, int64_t value) {
  return dtype == DType::kU64 ? absl::StrCat(static_cast<uint64_t>(value)) : absl::StrCat(value);
}

int MantissaBits(DType dtype) { return FormatOf(dtype).mantissa_bits; }
double SmallestNormal(DType dtype) {
  constexpr int kMantissa = 52, kBias = 1023;  // of a double
  return std::bit_cast<double>(static_cast<uint64_t>(FormatOf(dtype).min_exponent + kBias) << kMantissa);
}
double LargestNumber(DType dtype) { return FormatOf(dtype).max; }

double RoundFloat(DType dtype, double value) {
  if (dtype == DType::kF64) return value;
  if (dtype == DType::kF32) return static_cast<float>(value);
  return RoundToFormat(FormatOf(dtype), value);
}

IntRange RangeOfInt(DType dtype) {
  if (dtype == DType::kBool) return {0, 1};
  const int unused = 64 - 8 * DTypeBytes(dtype);
  if (IsUnsigned(dtype)) return {0, static_cast<int64_t>(~uint64_t{0} >> unused)};
  return {std::numeric_limits<int64_t>::min() >> unused, std::numeric_limits<int64_t>::max() >> unused};
}

int64_t WrapInt(DType dtype, int64_t value) {
  MYCC_CHECK(!IsFloat(dtype)) << "WrapInt to " << DTypeName(dtype);
  if (dtype == DType::kBool) return value != 0;
  const int unused = 64 - 8 * DTypeBytes(dtype);
  const uint64_t high = static_cast<uint64_t>(value) << unused;
  return IsUnsigned(dtype) ? static_cast<int64_t>(high >> unused) : static_cast<int64_t>(high) >> unused;
}

Scalar ConvertScalar(DType to, DType from, Scalar value) {
  Scalar result;
  if (IsFloat(to)) {
    result.f = IsFloat(from) ? RoundFloat(to, value.f) : IntToFloat(to, from, value.i);
  } else if (!IsFloat(from)) {
    result.i = WrapInt(to, value.i);
  } else if (to == DType::kBool) {
    result.i = value.f != 0;  // true for NaN
  } else {
    result.i = SaturateToInt(to, value.f);
  }
  return result;
}

Scalar LoadScalar(DType dtype, const void* address) {
  Scalar result;
  switch (dtype) {
    case DType::kF64: result.f = LoadAs<double>(address); break;
    case DType::kF32: result.f = LoadAs<float>(address); break;
    case DType::kF16: result.f = HalfBitsToFloat(LoadAs<uint16_t>(address)); break;
    case DType::kBF16: result.f = BFloat16BitsToFloat(LoadAs<uint16_t>(address)); break;
    case DType::kF8E4M3:
    case DType::kF8E5M2: result.f = Float8BitsToFloat(dtype, LoadAs<uint8_t>(address)); break;
    default: result.i = LoadInt(dtype, address);
  }
  return result;
}

void StoreScalar(DType dtype, void* address, Scalar value) {
  switch (dtype) {
    case DType::kF64: return StoreAs<double>(address, value.f);
    case DType::kF32: return StoreAs<float>(address, static_cast<float>(value.f));
    case DType::kF16: return StoreAs<uint16_t>(address, FloatToHalfBits(static_cast<float>(value.f)));
    case DType::kBF16: return StoreAs<uint16_t>(address, FloatToBFloat16Bits(static_cast<float>(value.f)));
    case DType::kF8E4M3:
    case DType::kF8E5M2: return StoreAs(address, FloatToFloat8Bits(dtype, static_cast<float>(value.f)));
    default: {
      const int64_t bits = WrapInt(dtype, value.i);
      std::memcpy(address, &bits, DTypeBytes(dtype));
    }
  }
}

uint16_t FloatToHalfBits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7e00 | ((bits >> 13) & 0x1ff));
  const double rounded = std::fabs(RoundFloat(DType::kF16, value));
  if (std::isinf(rounded)) return sign | 0x7c00;
  if (rounded < 0x1p-14)
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(rounded * 0x1p24));  // subnormal or zero
  const uint32_t exact = std::bit_cast<uint32_t>(static_cast<float>(rounded));
  return static_cast<uint16_t>(sign | ((exact >> 13) - ((127 - 15) << 10)));
}

float HalfBitsToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000 | ((magnitude & 0x3ff) << 13));
  if (magnitude < 0x400) {
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return sign != 0 ? -value : value;
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + ((127u - 15u) << 23)));
}

uint16_t FloatToBFloat16Bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  // Adding just under half of the last kept bit (half when that bit is odd) carries exactly when nearest-even
  // rounds up.
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float BFloat16BitsToFloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint8_t FloatToFloat8Bits(DType dtype, float value) {
  const FloatFormat& format = FormatOf(dtype);
  const int sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return static_cast<uint8_t>(sign | 0x7f);
  const double rounded = std::fabs(RoundToFormat(format, value));
  if (std::isinf(rounded)) return static_cast<uint8_t>(sign | 0x7c);  // of f8e5m2
  // In units of the last place; the implicit bit, where there is one, adds the last 1 to the exponent.
  const int exponent =
      rounded == 0 ? format.min_exponent : std::max(std::ilogb(rounded), format.min_exponent);
  const int units = static_cast<int>(std::ldexp(rounded, format.mantissa_bits - exponent));
  return static_cast<uint8_t>(sign | (((exponent - format.min_exponent) << format.mantissa_bits) + units));
}

float Float8BitsToFloat(DType dtype, uint8_t bits) {
  const FloatFormat& format = FormatOf(dtype);
  const float sign = (bits & 0x80) != 0 ? -1.0f : 1.0f;
  const int magnitude = bits & 0x7f;
  const int fraction = magnitude & ((1 << format.mantissa_bits) - 1),
            exponent = magnitude >> format.mantissa_bits;
  const int units = exponent == 0 ? fraction : fraction + (1 << format.mantissa_bits);
  const float number = std::ldexp(static_cast<float>(units),
                                  std::max(exponent - 1, 0) + format.min_exponent - format.mantissa_bits);
  if (number <= format.max) return sign * number;
  // Infinity would be the next number, and NaN those after it.
  return std::copysign(static_cast<float>(fraction == 0 ? kInfinity : std::nan("")), sign);
}

float RoundToTF32(float value) {
  if (!std::isfinite(value)) return value;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>((bits + 0xfff + ((bits >> 13) & 1)) & ~uint32_t{0x1fff});
}

}  // namespace mycc
