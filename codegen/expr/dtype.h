// The number types of the language and of the IR, and what it means to round to one of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mycc {

enum class DType : uint8_t { kF64, kF32, kF16, kBF16, kI64, kI32, kI8, kU8, kBool };
inline constexpr int kNumDTypes = 9;

std::string DTypeName(DType dtype);  // "f32"
std::optional<DType> ParseDType(std::string_view name);
int DTypeBytes(DType dtype);  // bool is one byte, 0 or 1
bool IsFloat(DType dtype);
bool IsInt(DType dtype);  // integers without bool

// One number of any type. Floats of every width are held as a double that is exactly representable in the
// type; integers and bool as an int64 within the type's range.
struct Scalar {
  double f = 0;
  int64_t i = 0;
};

// Rounds to nearest even into a float type's representable values; a double stays itself.
double RoundFloat(DType dtype, double value);
// Wraps an integer into the type's range (two's complement). bool: value != 0.
int64_t WrapInt(DType dtype, int64_t value);
// A float -> integer conversion truncates towards zero and saturates; NaN becomes 0. The same rule on every
// target.
Scalar ConvertScalar(DType to, DType from, Scalar value);

// Reads and writes one element in a type's storage form (little endian).
Scalar LoadScalar(DType dtype, const void* address);
void StoreScalar(DType dtype, void* address, Scalar value);

uint16_t FloatToHalfBits(float value);
float HalfBitsToFloat(uint16_t bits);
uint16_t FloatToBFloat16Bits(float value);
float BFloat16BitsToFloat(uint16_t bits);

// tf32: a float with 10 explicit mantissa bits, round to nearest even.
float RoundToTF32(float value);

}  // namespace mycc
