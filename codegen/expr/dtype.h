// The number types of the language and the IR: names, sizes, and rounding to each type.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace mycc {

// f8e4m3 is e4m3fn: no infinities, its only NaN is all ones, its largest number 448. f8e5m2 is like f16. New
// types are added at the end: the canonical order of operands, and so every workload's hash, depends on these
// numbers.
enum class DType : uint8_t {
  kF64,
  kF32,
  kF16,
  kBF16,
  kI64,
  kI32,
  kI8,
  kU8,
  kBool,
  kF8E4M3,
  kF8E5M2,
  kI16,
  kU16,
  kU32,
  kU64
};
inline constexpr int kNumDTypes = 15;

std::string DTypeName(DType dtype);  // "f32"
std::optional<DType> ParseDType(std::string_view name);
int DTypeBytes(DType dtype);  // bool is one byte, 0 or 1
bool IsFloat(DType dtype);
bool IsInt(DType dtype);          // integers without bool
bool IsUnsigned(DType dtype);     // u8, u16, u32, u64 and bool
bool IsNarrowFloat(DType dtype);  // less than 32 bits
bool IsFloat8(DType dtype);

// One number of any type. Floats of every width are held as a double that is exactly representable in the
// type; integers and bool as an int64 within the type's range. A u64 is held as its bits: an int64 that is
// negative from 2^63 on.
struct Scalar {
  double f = 0;
  int64_t i = 0;
};

// Rounds to the nearest value of a float type, ties to even. A finite number beyond the largest becomes
// infinity; in 8-bit types it becomes the largest number. Infinity stays; in f8e4m3 it becomes the largest
// number.
double RoundFloat(DType dtype, double value);
// A number whose order as an int64 is the order of the type's integers. Applied twice it gives the integer.
inline int64_t OrderOfInt(DType dtype, int64_t value) {
  return dtype == DType::kU64 ? value ^ std::numeric_limits<int64_t>::min() : value;
}
// The nearest double to an integer of the type.
double IntToDouble(DType dtype, int64_t value);
std::string PrintInt(DType dtype, int64_t value);  // in decimal
// The stored mantissa bits of a float type, its smallest normal number, and its largest finite one.
int MantissaBits(DType dtype);
double SmallestNormal(DType dtype);
double LargestNumber(DType dtype);
// The range of an integer type or bool. Those of u64 are its bits.
struct IntRange {
  int64_t lowest, highest;
};
IntRange RangeOfInt(DType dtype);
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
// The type is f8e4m3 or f8e5m2.
uint8_t FloatToFloat8Bits(DType dtype, float value);
float Float8BitsToFloat(DType dtype, uint8_t bits);

// tf32: a float with 10 explicit mantissa bits, round to nearest even.
float RoundToTF32(float value);

}  // namespace mycc
