// Number types: names, and rounding by tables and by exhaustive patterns.
#include "codegen/expr/dtype.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace mycc {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

float FromBits(DType dtype, uint16_t bits) {
  return dtype == DType::kF16 ? HalfBitsToFloat(bits) : BFloat16BitsToFloat(bits);
}

uint16_t ToBits(DType dtype, float value) {
  return dtype == DType::kF16 ? FloatToHalfBits(value) : FloatToBFloat16Bits(value);
}

// All finite non-negative values of a 16-bit type, in order: index = bits.
std::vector<double> FiniteValues(DType dtype) {
  std::vector<double> values;
  for (uint32_t bits = 0; std::isfinite(FromBits(dtype, static_cast<uint16_t>(bits))); ++bits) {
    values.push_back(FromBits(dtype, static_cast<uint16_t>(bits)));
  }
  return values;
}

// Nearest, ties to the even bit pattern; beyond half a step past the largest value, infinity. By search, not
// by arithmetic.
double NearestByTable(const std::vector<double>& values, double magnitude) {
  const double last = values.back(), step = last - values[values.size() - 2];
  if (magnitude >= last + step / 2) return kInf;
  const size_t above = std::ranges::lower_bound(values, magnitude) - values.begin();
  if (above == values.size()) return last;
  if (values[above] == magnitude) return magnitude;
  const double low = values[above - 1], high = values[above];
  if (magnitude - low != high - magnitude) return magnitude - low < high - magnitude ? low : high;
  return (above - 1) % 2 == 0 ? low : high;
}

TEST(DType, NamesParseWhatTheyPrint) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    EXPECT_EQ(ParseDType(DTypeName(dtype)), dtype);
  }
  EXPECT_FALSE(ParseDType("f33").has_value());
  EXPECT_FALSE(ParseDType("").has_value());
}

TEST(DType, SixteenBitPatternsSurviveWideningAndNarrowing) {
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const float value = FromBits(dtype, static_cast<uint16_t>(bits));
      const uint16_t back = ToBits(dtype, value);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(FromBits(dtype, back))) << bits;
      } else {
        EXPECT_EQ(back, bits) << DTypeName(dtype);
      }
    }
  }
}

TEST(DType, RoundingIsNearestEvenByTable) {
  std::mt19937_64 random(1);
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    const std::vector<double> values = FiniteValues(dtype);
    for (int i = 0; i < 20000; ++i) {
      // A value, a midpoint, or just beside a midpoint.
      const size_t at = 1 + random() % (values.size() - 1);
      const double middle = values[at - 1] + (values[at] - values[at - 1]) / 2;
      const double candidates[] = {values[at], middle, std::nextafter(middle, 0),
                                   std::nextafter(middle, kInf)};
      const double value = candidates[random() % 4];
      EXPECT_EQ(RoundFloat(dtype, value), NearestByTable(values, value)) << value;
      EXPECT_EQ(RoundFloat(dtype, -value), -NearestByTable(values, value)) << value;
    }
  }
}

constexpr DType kFloat8[] = {DType::kF8E4M3, DType::kF8E5M2};

TEST(DType, EightBitPatternsSurviveWideningAndNarrowing) {
  for (const DType dtype : kFloat8) {
    for (int bits = 0; bits < 256; ++bits) {
      const float value = Float8BitsToFloat(dtype, static_cast<uint8_t>(bits));
      const uint8_t back = FloatToFloat8Bits(dtype, value);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(Float8BitsToFloat(dtype, back))) << bits;
      } else {
        EXPECT_EQ(back, bits) << DTypeName(dtype);
        EXPECT_EQ(RoundFloat(dtype, value), value);
      }
    }
  }
}

TEST(DType, EightBitFloatsOfTheTwoFormats) {
  const auto value = [](DType dtype, int bits) {
    return Float8BitsToFloat(dtype, static_cast<uint8_t>(bits));
  };
  int infinities = 0, nans = 0;
  for (int bits = 0; bits < 256; ++bits) {
    const float e4m3 = value(DType::kF8E4M3, bits), half = HalfBitsToFloat(static_cast<uint16_t>(bits << 8));
    infinities += std::isinf(e4m3);
    nans += std::isnan(e4m3);
    EXPECT_TRUE(value(DType::kF8E5M2, bits) == half || std::isnan(half)) << "f8e5m2 is f16's upper byte";
    EXPECT_EQ(std::isnan(value(DType::kF8E5M2, bits)), std::isnan(half));
  }
  EXPECT_EQ(infinities, 0);
  EXPECT_EQ(nans, 2);
  EXPECT_TRUE(std::isnan(value(DType::kF8E4M3, 0xff)));
  EXPECT_EQ(value(DType::kF8E4M3, 0x7e), 448);
  EXPECT_EQ(value(DType::kF8E4M3, 0x01), 0x1p-9);
  EXPECT_EQ(value(DType::kF8E4M3, 0x08), 0x1p-6);
  EXPECT_EQ(value(DType::kF8E4M3, 0xb8), -1);
  EXPECT_EQ(value(DType::kF8E5M2, 0x7b), 57344);
}

// Numbers beyond the largest become it; infinity stays where there is one.
TEST(DType, RoundingToEightBitsIsNearestEvenByTable) {
  for (const DType dtype : kFloat8) {
    std::vector<double> values;
    for (int bits = 0; bits < 128; ++bits) {
      const double value = Float8BitsToFloat(dtype, static_cast<uint8_t>(bits));
      if (std::isfinite(value)) values.push_back(value);
    }
    for (size_t at = 1; at < values.size(); ++at) {
      const double middle = values[at - 1] + (values[at] - values[at - 1]) / 2;
      for (const double value :
           {values[at], middle, std::nextafter(middle, 0), std::nextafter(middle, kInf)}) {
        const double nearest = NearestByTable(values, value);
        EXPECT_EQ(RoundFloat(dtype, value), nearest) << value;
        EXPECT_EQ(RoundFloat(dtype, -value), -nearest) << value;
      }
    }
    for (const double beyond : {values.back() * 1.01, values.back() * 1.3, 1e9, 1e300}) {
      EXPECT_EQ(RoundFloat(dtype, beyond), values.back());
      EXPECT_EQ(RoundFloat(dtype, -beyond), -values.back());
    }
    EXPECT_TRUE(std::isnan(RoundFloat(dtype, kNaN)));
    EXPECT_TRUE(std::signbit(RoundFloat(dtype, -0.0)));
  }
  EXPECT_EQ(RoundFloat(DType::kF8E4M3, -kInf), -448);
  EXPECT_EQ(RoundFloat(DType::kF8E5M2, -kInf), -kInf);
}

TEST(DType, RoundingToHalfOverflowsAtTheHalfStep) {
  EXPECT_EQ(RoundFloat(DType::kF16, 65519.99), 65504);
  EXPECT_EQ(RoundFloat(DType::kF16, 65520), kInf);
  EXPECT_EQ(RoundFloat(DType::kF16, 0x1p-25), 0);
  EXPECT_EQ(RoundFloat(DType::kF16, 0x1.8p-25), 0x1p-24);
  EXPECT_TRUE(std::signbit(RoundFloat(DType::kF16, -0.0)));
  EXPECT_TRUE(std::isnan(RoundFloat(DType::kBF16, kNaN)));
}

TEST(DType, NarrowingFloatsToBitsAgreesWithRounding) {
  std::mt19937 random(2);
  for (int i = 0; i < 100000; ++i) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isnan(value)) continue;
    for (DType dtype : {DType::kF16, DType::kBF16}) {
      EXPECT_EQ(FromBits(dtype, ToBits(dtype, value)), RoundFloat(dtype, value)) << value;
    }
  }
}

TEST(DType, NaNStaysNaNWhenItsPayloadIsInTheLostBits) {
  const float low_payload = std::bit_cast<float>(0x7f800001u);
  EXPECT_TRUE(std::isnan(BFloat16BitsToFloat(FloatToBFloat16Bits(low_payload))));
  EXPECT_TRUE(std::isnan(HalfBitsToFloat(FloatToHalfBits(low_payload))));
}

TEST(DType, TF32KeepsTenBitsNearestEven) {
  EXPECT_EQ(RoundToTF32(1.0f), 1.0f);
  EXPECT_EQ(RoundToTF32(1.0f + 0x1p-11f), 1.0f);                        // a tie, to even
  EXPECT_EQ(RoundToTF32(1.0f + 0x1p-10f + 0x1p-11f), 1.0f + 0x1p-9f);   // a tie, to even, upwards
  EXPECT_EQ(RoundToTF32(1.0f + 0x1p-11f + 0x1p-23f), 1.0f + 0x1p-10f);  // just above the tie
  EXPECT_EQ(RoundToTF32(-1.0f - 0x1p-11f - 0x1p-23f), -1.0f - 0x1p-10f);
  EXPECT_EQ(RoundToTF32(std::numeric_limits<float>::max()), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(RoundToTF32(std::bit_cast<float>(0x7fffffffu))));
}

TEST(DType, IntegersWrap) {
  EXPECT_EQ(WrapInt(DType::kI8, 128), -128);
  EXPECT_EQ(WrapInt(DType::kI8, -129), 127);
  EXPECT_EQ(WrapInt(DType::kU8, 256 + 7), 7);
  EXPECT_EQ(WrapInt(DType::kU8, -1), 255);
  EXPECT_EQ(WrapInt(DType::kI16, 32768), -32768);
  EXPECT_EQ(WrapInt(DType::kU16, -1), 65535);
  EXPECT_EQ(WrapInt(DType::kU32, -1), 4294967295);
  EXPECT_EQ(WrapInt(DType::kU64, -1), -1) << "held as its bits";
  EXPECT_EQ(WrapInt(DType::kI32, int64_t{1} << 31), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(WrapInt(DType::kBool, 2), 1);
}

TEST(DType, FloatsToIntegersTruncateAndSaturate) {
  const auto convert = [](DType to, double value) { return ConvertScalar(to, DType::kF64, {value, 0}).i; };
  EXPECT_EQ(convert(DType::kI32, 2.9), 2);
  EXPECT_EQ(convert(DType::kI32, -2.9), -2);
  EXPECT_EQ(convert(DType::kU8, -3.0), 0);
  EXPECT_EQ(convert(DType::kU8, 255.9), 255);
  EXPECT_EQ(convert(DType::kI8, 1e9), 127);
  EXPECT_EQ(convert(DType::kI8, -kInf), -128);
  EXPECT_EQ(convert(DType::kI32, kNaN), 0);
  EXPECT_EQ(convert(DType::kI64, 0x1p63), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(convert(DType::kI64, -0x1p63), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(convert(DType::kI64, kInf), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(convert(DType::kI16, -1e9), -32768);
  EXPECT_EQ(convert(DType::kU16, 65535.5), 65535);
  EXPECT_EQ(convert(DType::kU32, 1e10), 4294967295);
  EXPECT_EQ(convert(DType::kU32, -0.5), 0);
  EXPECT_EQ(static_cast<uint64_t>(convert(DType::kU64, 0x1.8p63)), 0xc000000000000000u);
  EXPECT_EQ(static_cast<uint64_t>(convert(DType::kU64, 0x1p64)), 0xffffffffffffffffu);
  EXPECT_EQ(convert(DType::kU64, -1), 0);
  EXPECT_EQ(convert(DType::kU64, kNaN), 0);
}

TEST(DType, UnsignedIntegersOf64BitsAreHeldAsTheirBits) {
  EXPECT_LT(OrderOfInt(DType::kU64, 1), OrderOfInt(DType::kU64, -1));
  EXPECT_GT(OrderOfInt(DType::kI64, 1), OrderOfInt(DType::kI64, -1));
  EXPECT_EQ(IntToDouble(DType::kU64, -1), 0x1p64);
  EXPECT_EQ(IntToDouble(DType::kI64, -1), -1);
  EXPECT_EQ(PrintInt(DType::kU64, -1), "18446744073709551615");
  EXPECT_EQ(PrintInt(DType::kI64, -1), "-1");
  for (const DType dtype : {DType::kU8, DType::kU16, DType::kU32, DType::kU64, DType::kBool})
    EXPECT_TRUE(IsUnsigned(dtype)) << DTypeName(dtype);
  for (const DType dtype : {DType::kI8, DType::kI16, DType::kI32, DType::kI64, DType::kF32})
    EXPECT_FALSE(IsUnsigned(dtype)) << DTypeName(dtype);
}

TEST(DType, BoolIsWhetherAValueIsNotZero) {
  EXPECT_EQ(ConvertScalar(DType::kBool, DType::kF32, {0.25, 0}).i, 1);
  EXPECT_EQ(ConvertScalar(DType::kBool, DType::kF32, {-0.0, 0}).i, 0);
  EXPECT_EQ(ConvertScalar(DType::kBool, DType::kF32, {kNaN, 0}).i, 1);
  EXPECT_EQ(ConvertScalar(DType::kBool, DType::kI32, {0, 256}).i, 1);
  EXPECT_EQ(ConvertScalar(DType::kF32, DType::kBool, {0, 1}).f, 1.0);
}

TEST(DType, IntegersToFloatsRoundOnce) {
  // Just above a tie of f32 that f64 would round down to the tie itself.
  const int64_t value = (int64_t{1} << 60) + (int64_t{1} << 36) + 1;
  EXPECT_EQ(ConvertScalar(DType::kF32, DType::kI64, {0, value}).f, 0x1p60 + 0x1p37);
  EXPECT_EQ(ConvertScalar(DType::kF32, DType::kI64, {0, -value}).f, -(0x1p60 + 0x1p37));
  EXPECT_EQ(ConvertScalar(DType::kBF16, DType::kI64, {0, 257}).f, 256);
  EXPECT_EQ(ConvertScalar(DType::kF16, DType::kI64, {0, 1 << 20}).f, kInf);
  std::mt19937_64 random(3);
  for (int i = 0; i < 10000; ++i) {
    const int64_t any = static_cast<int64_t>(random() >> (random() % 64));
    EXPECT_EQ(ConvertScalar(DType::kF32, DType::kI64, {0, any}).f, static_cast<float>(any)) << any;
    const uint64_t bits = static_cast<uint64_t>(any);
    EXPECT_EQ(ConvertScalar(DType::kF32, DType::kU64, {0, any}).f, static_cast<float>(bits)) << bits;
    EXPECT_EQ(ConvertScalar(DType::kF64, DType::kU64, {0, any}).f, static_cast<double>(bits)) << bits;
  }
}

TEST(DType, ElementsLoadAsTheyWereStored) {
  std::mt19937_64 random(4);
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    for (int k = 0; k < 100; ++k) {
      const int64_t any = static_cast<int64_t>(random());
      const Scalar value = IsFloat(dtype) ? Scalar{RoundFloat(dtype, static_cast<double>(any) * 0x1p-60), 0}
                                          : Scalar{0, WrapInt(dtype, any)};
      unsigned char bytes[8] = {};
      StoreScalar(dtype, bytes, value);
      const Scalar loaded = LoadScalar(dtype, bytes);
      EXPECT_EQ(loaded.f, value.f) << DTypeName(dtype);
      EXPECT_EQ(loaded.i, value.i) << DTypeName(dtype);
    }
  }
}

}  // namespace
}  // namespace mycc
