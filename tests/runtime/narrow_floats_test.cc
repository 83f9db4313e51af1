// The artifact's own conversions to and from 16-bit floats against the number types of the language.
#include <emmintrin.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "codegen/expr/dtype.h"

extern "C" {
__m128i __truncsfhf2(float value);
__m128i __truncdfhf2(double value);
__m128i __truncsfbf2(float value);
__m128i __truncdfbf2(double value);
float __extendhfsf2(__m128i half);
}

namespace mycc {
namespace {

uint16_t LowBits(__m128i value) { return static_cast<uint16_t>(_mm_cvtsi128_si32(value)); }

// The bits that the language stores for a value rounded to `dtype`.
uint16_t Stored(DType dtype, double value) {
  uint16_t bits;
  StoreScalar(dtype, &bits, {RoundFloat(dtype, value), 0});
  return bits;
}

void ExpectAgreement(double value) {
  EXPECT_EQ(LowBits(__truncdfhf2(value)), Stored(DType::kF16, value)) << value;
  EXPECT_EQ(LowBits(__truncdfbf2(value)), Stored(DType::kBF16, value)) << value;
  const float narrow = static_cast<float>(value);
  EXPECT_EQ(LowBits(__truncsfhf2(narrow)), Stored(DType::kF16, narrow)) << narrow;
  EXPECT_EQ(LowBits(__truncsfbf2(narrow)), Stored(DType::kBF16, narrow)) << narrow;
}

TEST(NarrowFloatsTest, EdgesRoundAsTheLanguageSays) {
  for (double value : {0.0, -0.0, 1.0, 65504.0, 65519.99, 65520.0, 65536.0, 6e-8, 2.9e-8, 3.0e-8, 6.1e-5,
                       1e-300, 1e300, 3.4e38, 3.39e38, 1e-45, std::numeric_limits<double>::infinity(),
                       -std::numeric_limits<double>::infinity()}) {
    ExpectAgreement(value);
    ExpectAgreement(-value);
  }
}

TEST(NarrowFloatsTest, RandomBitPatternsRoundAsTheLanguageSays) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    // Exponents around those of the narrow types, all fractions, and ties among them.
    const int exponent = static_cast<int>(random() % 320) - 160;
    const double fraction = 1.0 + static_cast<double>(random() % 8192) / 8192;
    ExpectAgreement(std::ldexp(random() % 2 ? fraction : -fraction, exponent));
  }
}

TEST(NarrowFloatsTest, NanStaysNan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(HalfBitsToFloat(LowBits(__truncdfhf2(nan)))));
  EXPECT_TRUE(std::isnan(BFloat16BitsToFloat(LowBits(__truncdfbf2(nan)))));
}

TEST(NarrowFloatsTest, EveryHalfWidensExactly) {
  for (int bits = 0; bits < 1 << 16; ++bits) {
    // Bits above the 16 are not the callee's business.
    const float got = __extendhfsf2(_mm_cvtsi32_si128(bits | 0x5a5a0000)),
                expected = HalfBitsToFloat(static_cast<uint16_t>(bits));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(got)) << bits;
    } else {
      EXPECT_EQ(std::memcmp(&got, &expected, sizeof got), 0) << bits;
    }
  }
}

}  // namespace
}  // namespace mycc
