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

struct DTypeInfo {
  std::string_view name;
  int bytes;
  bool is_float;
};

constexpr DTypeInfo kDTypes[kNumDTypes] = {
    {"f64", 8, true},    {"f32", 4, true},  {"f16", 2, true},  {"bf16", 2, true},  {"i64", 8, false},
    {"i32", 4, false},   {"i8", 1, false},  {"u8", 1, false},  {"bool", 1, false}, {"f8e4m3", 1, true},
    {"f8e5m2", 1, true}, {"i16", 2, false}, {"u16", 2, false}, {"u32", 4, false},  {"u64", 8, false},
};

const DTypeInfo& Info(DType dtype) { return kDTypes[static_cast<int>(dtype)]; }

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The format of an 8-bit float: a sign, an exponent and `mantissa_bits`.
struct Float8 {
  int mantissa_bits, min_exponent;
  double max, of_infinity;  // of_infinity: the value that infinity becomes
  uint8_t max_bits;
};

constexpr Float8 kE4M3 = {3, -6, 448, 448, 0x7e}, kE5M2 = {2, -14, 57344, kInfinity, 0x7b};

const Float8& Float8Of(DType dtype) { return dtype == DType::kF8E4M3 ? kE4M3 : kE5M2; }

// Rounds to a binary format of `mantissa_bits` explicit bits, smallest normal exponent `min_exponent` and
// largest finite value `max`; larger numbers become `overflow`.
double RoundToFormat(double value, int mantissa_bits, int min_exponent, double max,
                     double overflow = kInfinity) {
  if (value == 0 || !std::isfinite(value)) return value;
  constexpr int kMantissa = 52, kBias = 1023, kHuge = 512;  // of a double; beyond the narrower formats
  const int own = static_cast<int>(std::bit_cast<uint64_t>(value) >> kMantissa & 0x7ff) - kBias;
  if (own >= kHuge) return std::copysign(overflow, value);
  // The sum with a number whose last bit has the weight of the format's last bit is rounded there, to even.
  const int exponent = std::max(own, min_exponent) + kMantissa - mantissa_bits;
  const double aligned = 1.5 * std::bit_cast<double>(static_cast<uint64_t>(exponent + kBias) << kMantissa);
  const double rounded = std::copysign((value + aligned) - aligned, value);
  return std::fabs(rounded) > max ? std::copysign(overflow, value) : rounded;
}

double RoundToFloat8(const Float8& format, double value) {
  if (std::isinf(value)) return std::copysign(format.of_infinity, value);
  return RoundToFormat(value, format.mantissa_bits, format.min_exponent, format.max, format.max);
}

int64_t SaturateToInt(DType to, double value) {
  if (std::isnan(value)) return 0;
  const auto clamp = [value](double lowest, double highest) {
    return static_cast<int64_t>(std::trunc(std::min(std::max(value, lowest), highest)));
  };
  switch (to) {
    case DType::kI32: return clamp(-2147483648.0, 2147483647.0);
    case DType::kI8: return clamp(-128, 127);
    case DType::kU8: return clamp(0, 255);
    case DType::kI16: return clamp(-32768, 32767);
    case DType::kU16: return clamp(0, 65535);
    case DType::kU32: return clamp(0, 4294967295.0);
    case DType::kU64:
      // 2^64 is the first double beyond u64's range.
      if (value >= 0x1p64) return -1;
      return value <= 0 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(value));
    default: break;
  }
  // 2^63 is the first double beyond i64's range.
  if (value >= 0x1p63) return std::numeric_limits<int64_t>::max();
  if (value < -0x1p63) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
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

template <typename T>
void StoreAs(void* address, T value) {
  std::memcpy(address, &value, sizeof(T));
}

}  // namespace

std::string DTypeName(DType dtype) { return std::string(Info(dtype).name); }

std::optional<DType> ParseDType(std::string_view name) {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (kDTypes[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

int DTypeBytes(DType dtype) { return Info(dtype).bytes; }
bool IsFloat(DType dtype) { return Info(dtype).is_float; }
bool IsInt(DType dtype) { return !Info(dtype).is_float && dtype != DType::kBool; }
bool IsUnsigned(DType dtype) {
  switch (dtype) {
    case DType::kU8:
    case DType::kU16:
    case DType::kU32:
    case DType::kU64:
    case DType::kBool: return true;
    default: return false;
  }
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

double SmallestNormal(DType dtype) {
  switch (dtype) {
    case DType::kF64: return 0x1p-1022;
    case DType::kF32:
    case DType::kBF16: return 0x1p-126;
    case DType::kF16: return 0x1p-14;
    case DType::kF8E4M3:
    case DType::kF8E5M2: return std::ldexp(1, Float8Of(dtype).min_exponent);
    default: MYCC_CHECK(false) << DTypeName(dtype) << " has no normal numbers"; return 0;
  }
}

double RoundFloat(DType dtype, double value) {
  switch (dtype) {
    case DType::kF64: return value;
    case DType::kF32: return static_cast<float>(value);
    case DType::kF16: return RoundToFormat(value, 10, -14, 65504.0);
    case DType::kBF16: return RoundToFormat(value, 7, -126, 0x1.fep127);
    case DType::kF8E4M3:
    case DType::kF8E5M2: return RoundToFloat8(Float8Of(dtype), value);
    default: break;
  }
  MYCC_CHECK(false) << "RoundFloat to " << DTypeName(dtype);
  return 0;
}

int64_t WrapInt(DType dtype, int64_t value) {
  switch (dtype) {
    case DType::kI64:
    case DType::kU64: return value;
    case DType::kI32: return static_cast<int32_t>(value);
    case DType::kI8: return static_cast<int8_t>(value);
    case DType::kU8: return static_cast<uint8_t>(value);
    case DType::kI16: return static_cast<int16_t>(value);
    case DType::kU16: return static_cast<uint16_t>(value);
    case DType::kU32: return static_cast<uint32_t>(value);
    case DType::kBool: return value != 0;
    default: break;
  }
  MYCC_CHECK(false) << "WrapInt to " << DTypeName(dtype);
  return 0;
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
    case DType::kI64:
    case DType::kU64: result.i = LoadAs<int64_t>(address); break;
    case DType::kI32: result.i = LoadAs<int32_t>(address); break;
    case DType::kI8: result.i = WrapInt(dtype, LoadAs<uint8_t>(address)); break;
    case DType::kU8: result.i = LoadAs<uint8_t>(address); break;
    case DType::kI16: result.i = LoadAs<int16_t>(address); break;
    case DType::kU16: result.i = LoadAs<uint16_t>(address); break;
    case DType::kU32: result.i = LoadAs<uint32_t>(address); break;
    case DType::kBool: result.i = LoadAs<uint8_t>(address) != 0; break;
    case DType::kF8E4M3:
    case DType::kF8E5M2: result.f = Float8BitsToFloat(dtype, LoadAs<uint8_t>(address)); break;
  }
  return result;
}

void StoreScalar(DType dtype, void* address, Scalar value) {
  switch (dtype) {
    case DType::kF64: return StoreAs<double>(address, value.f);
    case DType::kF32: return StoreAs<float>(address, static_cast<float>(value.f));
    case DType::kF16: return StoreAs<uint16_t>(address, FloatToHalfBits(static_cast<float>(value.f)));
    case DType::kBF16: return StoreAs<uint16_t>(address, FloatToBFloat16Bits(static_cast<float>(value.f)));
    case DType::kI64:
    case DType::kU64: return StoreAs<int64_t>(address, value.i);
    case DType::kI32: return StoreAs<int32_t>(address, static_cast<int32_t>(value.i));
    case DType::kI8: return StoreAs<int8_t>(address, static_cast<int8_t>(value.i));
    case DType::kU8: return StoreAs<uint8_t>(address, static_cast<uint8_t>(value.i));
    case DType::kI16:
    case DType::kU16: return StoreAs<uint16_t>(address, static_cast<uint16_t>(value.i));
    case DType::kU32: return StoreAs<uint32_t>(address, static_cast<uint32_t>(value.i));
    case DType::kBool: return StoreAs<uint8_t>(address, value.i != 0);
    case DType::kF8E4M3:
    case DType::kF8E5M2: return StoreAs(address, FloatToFloat8Bits(dtype, static_cast<float>(value.f)));
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
  const Float8& format = Float8Of(dtype);
  const int sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return static_cast<uint8_t>(sign | 0x7f);
  const double rounded = std::fabs(RoundToFloat8(format, value));
  if (std::isinf(rounded)) return static_cast<uint8_t>(sign | (format.max_bits + 1));
  // In units of the last place; the implicit bit, where there is one, adds the last 1 to the exponent.
  const int exponent =
      rounded == 0 ? format.min_exponent : std::max(std::ilogb(rounded), format.min_exponent);
  const int units = static_cast<int>(std::ldexp(rounded, format.mantissa_bits - exponent));
  return static_cast<uint8_t>(sign | (((exponent - format.min_exponent) << format.mantissa_bits) + units));
}

float Float8BitsToFloat(DType dtype, uint8_t bits) {
  const Float8& format = Float8Of(dtype);
  const float sign = (bits & 0x80) != 0 ? -1.0f : 1.0f;
  const int magnitude = bits & 0x7f;
  if (magnitude > format.max_bits) {
    const bool infinite = format.of_infinity == kInfinity && magnitude == format.max_bits + 1;
    return std::copysign(
        infinite ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN(), sign);
  }
  const int fraction = magnitude & ((1 << format.mantissa_bits) - 1),
            exponent = magnitude >> format.mantissa_bits;
  const int units = exponent == 0 ? fraction : fraction + (1 << format.mantissa_bits);
  return sign * std::ldexp(static_cast<float>(units),
                           std::max(exponent - 1, 0) + format.min_exponent - format.mantissa_bits);
}

float RoundToTF32(float value) {
  if (!std::isfinite(value)) return value;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>((bits + 0xfff + ((bits >> 13) & 1)) & ~uint32_t{0x1fff});
}

}  // namespace mycc
