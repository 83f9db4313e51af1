// Converts between f32 or f64 and 16-bit floats. LLVM's code calls these functions by its names when the CPU
// has no instruction. They are usually in a compiler's run-time library, which a host may lack.
//
// A 16-bit float is passed in the low bits of an xmm register. Not every C compiler has the type, so here it
// is a whole vector.
#include <emmintrin.h>
#include <stdint.h>
#include <string.h>

typedef struct {
  int exponent_bits, mantissa_bits;
} Format;
static const Format kHalf = {5, 10};
static const Format kBFloat = {8, 7};

// To nearest, ties to even. Every float is a double, so one routine serves both.
static __m128i Narrow(double value, Format format) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  const int sign = (int)(bits >> 63) << 15;
  const int infinity = ((1 << format.exponent_bits) - 1) << format.mantissa_bits;
  const int exponent = (int)(bits >> 52 & 0x7ff);
  const uint64_t fraction = bits & ((1ull << 52) - 1);
  if (exponent == 0x7ff) {
    const int quiet =
        fraction == 0 ? 0 : 1 << (format.mantissa_bits - 1) | (int)(fraction >> (52 - format.mantissa_bits));
    return _mm_cvtsi32_si128(sign | infinity | quiet);
  }
  // The exponent with the narrow format's bias. Below 1 the result is subnormal, and loses 1 - exponent more
  // bits.
  const int narrow_exponent = exponent - 1023 + (1 << (format.exponent_bits - 1)) - 1;
  const int drop = 52 - format.mantissa_bits + (narrow_exponent < 1 ? 1 - narrow_exponent : 0);
  if (exponent == 0 || drop > 53) return _mm_cvtsi32_si128(sign);
  const uint64_t mantissa = fraction | 1ull << 52;
  uint64_t kept = mantissa >> drop;
  const uint64_t rest = mantissa & ((1ull << drop) - 1), tie = 1ull << (drop - 1);
  if (rest > tie || (rest == tie && (kept & 1))) ++kept;
  // The implicit bit, where there is one, adds the last 1 to the exponent.
  const int64_t result =
      (int64_t)kept + ((int64_t)(narrow_exponent > 1 ? narrow_exponent - 1 : 0) << format.mantissa_bits);
  return _mm_cvtsi32_si128(sign | (result < infinity ? (int)result : infinity));
}

__m128i __truncsfhf2(float value) { return Narrow(value, kHalf); }
__m128i __truncdfhf2(double value) { return Narrow(value, kHalf); }
__m128i __truncsfbf2(float value) { return Narrow(value, kBFloat); }
__m128i __truncdfbf2(double value) { return Narrow(value, kBFloat); }

float __extendhfsf2(__m128i half) {
  const uint32_t bits = (uint32_t)_mm_cvtsi128_si32(half) & 0xffff;
  const uint32_t sign = bits >> 15 << 31, exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  if (exponent == 0) {
    const float magnitude = (float)fraction * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  const uint32_t wide = sign | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}
