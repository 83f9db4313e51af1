#include "codegen/onnx/small_types.h"

#include <cmath>
#include <limits>
#include <vector>

#include "base/check.h"
#include "codegen/onnx/elementwise.h"

namespace mycc::onnx {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A float of few bits: a sign where `sign` is its bit, then the exponent and the mantissa.
struct SmallFormat {
  int sign, mantissa_bits, bias, largest;  // largest: the bits of the largest number
};

SmallFormat FormatOf(int type) {
  if (type == kFloat8E4M3FNUZ) return {0x80, 3, 8, 0x7f};
  if (type == kFloat8E5M2FNUZ) return {0x80, 2, 16, 0x7f};
  return {0x8, 1, 1, 7};  // FLOAT4E2M1
}

double MagnitudeOfBits(const SmallFormat& format, int bits) {
  const int exponent = bits >> format.mantissa_bits;
  const double fraction = std::ldexp(bits & ((1 << format.mantissa_bits) - 1), -format.mantissa_bits);
  return exponent == 0 ? std::ldexp(fraction, 1 - format.bias)
                       : std::ldexp(1 + fraction, exponent - format.bias);
}

double NumberOfBits(int type, int bits) {
  if (type == kFloat8E8M0) return bits == 0xff ? kNan : std::ldexp(1, bits - 127);
  const SmallFormat format = FormatOf(type);
  if (type != kFloat4E2M1 && bits == format.sign) return kNan;
  const double magnitude = MagnitudeOfBits(format, bits & (format.sign - 1));
  return bits & format.sign ? -magnitude : magnitude;
}

Buffer AddTable(GraphBuilder& g, DType dtype, const std::vector<double>& values) {
  NDArray table = NDArray::Zeros(dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) table.Set(static_cast<int64_t>(i), Scalar{values[i], 0});
  return g.AddConstant(std::move(table));
}

// The next number of the type behind a positive one.
double Behind(DType dtype, double value) {
  return dtype == DType::kF64 ? std::nextafter(value, INFINITY)
                              : std::nextafterf(static_cast<float>(value), INFINITY);
}

// The bits of a magnitude are the count of these that are at most the magnitude: where rounding, halves to
// even, goes to the next bits. Not saturated, the last one leads to the bits behind the largest number.
std::vector<double> Thresholds(const SmallFormat& format, DType dtype, bool saturate) {
  std::vector<double> thresholds;
  for (int bits = 0; bits < format.largest + (saturate ? 0 : 1); ++bits) {
    const double below = MagnitudeOfBits(format, bits), above = MagnitudeOfBits(format, bits + 1);
    const double middle = below + (above - below) / 2;
    thresholds.push_back(bits % 2 == 1 ? middle : Behind(dtype, middle));
  }
  return thresholds;
}

// The same for powers of two, as ONNX's conversion works on the bits of a float: subnormal numbers count as
// fractions of the smallest power, and 2^127 is the largest.
std::vector<double> PowerThresholds(DType dtype, const Encoding& encoding) {
  const double smallest = dtype == DType::kF64 ? 0x1p-1074 : 0x1p-149;
  std::vector<double> thresholds;
  const int count = encoding.saturate && encoding.mode != "down" ? 254 : 255;
  for (int bits = 0; bits < count; ++bits) {
    const double power = std::ldexp(1, bits - 127);
    if (encoding.mode == "down") {
      thresholds.push_back(2 * power);
    } else if (encoding.mode == "nearest") {
      thresholds.push_back(bits == 0 ? Behind(dtype, power) : 1.5 * power);
    } else {
      thresholds.push_back(bits == 0 ? smallest : Behind(dtype, power));
    }
  }
  return thresholds;
}

// The type in which numbers are compared with thresholds.
DType ComparedAs(DType dtype) { return dtype == DType::kF64 ? DType::kF64 : DType::kF32; }

Buffer CountAtMost(GraphBuilder& g, const Buffer& numbers, const std::vector<double>& thresholds) {
  const DType dtype = ComparedAs(numbers->dtype);
  const Buffer table = AddTable(g, dtype, thresholds);
  return g.Reduce(ReduceOp::kSum, numbers->shape, {table->shape[0]}, [&](const Axes& axes, const Axes& r) {
    const Expr magnitude = Magnitude(MakeCast(dtype, Load(numbers, axes)));
    return MakeCast(DType::kI32, AtMost(Load(table, {r[0]}), magnitude));
  });
}

Expr IsNanOrInfinite(const Expr& x) {
  return MakeUnary(Op::kNot, LessThan(Magnitude(x), NumberLike(x, std::numeric_limits<double>::infinity())));
}

Buffer EncodedPowers(GraphBuilder& g, const Buffer& numbers, const Encoding& encoding) {
  const DType dtype = ComparedAs(numbers->dtype);
  const Buffer count = CountAtMost(g, numbers, PowerThresholds(dtype, encoding));
  return g.Map(numbers->shape, [&](const Axes& axes) {
    const Expr x = MakeCast(dtype, Load(numbers, axes));
    return MakeSelect(IsNanOrInfinite(x), IntConst(0xff, DType::kU8),
                      MakeCast(DType::kU8, Load(count, axes)));
  });
}

Buffer EncodedAsBits(GraphBuilder& g, const Buffer& numbers, int type, const Encoding& encoding) {
  if (type == kFloat8E8M0) return EncodedPowers(g, numbers, encoding);
  const DType dtype = ComparedAs(numbers->dtype);
  const SmallFormat format = FormatOf(type);
  const bool is_fnuz = type != kFloat4E2M1, saturate = encoding.saturate || !is_fnuz;
  const Buffer count = CountAtMost(g, numbers, Thresholds(format, dtype, saturate));
  return g.Map(numbers->shape, [&](const Axes& axes) {
    const Expr x = MakeCast(dtype, Load(numbers, axes)), zero = NumberLike(x, 0);
    const Expr bits = Load(count, axes), sign = IntConst(format.sign, DType::kI32);
    const auto either = [](const Expr& a, const Expr& b) { return MakeBinary(Op::kOr, a, b); };
    Expr with_sign;
    if (is_fnuz) {  // no negative zero, whose bits are NaN
      const Expr is_negative =
          MakeBinary(Op::kAnd, LessThan(x, zero), LessThan(IntConst(0, DType::kI32), bits));
      const Expr is_nan =
          either(MakeBinary(Op::kNe, x, x), LessThan(IntConst(format.largest, DType::kI32), bits));
      with_sign = MakeSelect(is_nan, sign, MakeSelect(is_negative, bits + sign, bits));
    } else {  // NaN becomes the negative zero
      const Expr is_negative =
          either(MakeUnary(Op::kNot, AtMost(zero, x)), LessThan(Quotient(NumberLike(x, 1), x), zero));
      with_sign = MakeSelect(is_negative, bits + sign, bits);
    }
    return MakeCast(DType::kU8, with_sign);
  });
}

// A float of the language: its casts saturate numbers, and keep infinity where there is one.
Expr EncodedFloat8(const Expr& number, DType dtype, bool saturate) {
  const Expr x = IsFloat(number->dtype) ? number : MakeCast(DType::kF32, number);
  constexpr double kLargestE5M2 = 57344;
  if (saturate) {
    if (dtype == DType::kF8E4M3) return MakeCast(dtype, x);
    return MakeCast(dtype, ClampTo(x, NumberLike(x, -kLargestE5M2), NumberLike(x, kLargestE5M2)));
  }
  // The middle between the largest number and the one that would follow; it goes to the even one of the two.
  if (dtype == DType::kF8E4M3)
    return MakeSelect(AtMost(Magnitude(x), NumberLike(x, 464)), MakeCast(dtype, x), FloatConst(kNan, dtype));
  const Expr infinity = FloatConst(std::numeric_limits<double>::infinity(), dtype);
  const Expr with_sign = MakeSelect(LessThan(x, NumberLike(x, 0)), Negative(infinity), infinity);
  return MakeSelect(AtMost(NumberLike(x, 61440), Magnitude(x)), with_sign, MakeCast(dtype, x));
}

Expr EncodedPacked(const Expr& number, int type, DType storage) {
  const int64_t count = int64_t{1} << PackedBits(type);
  const bool is_signed = type == kInt4 || type == kInt2;
  const Expr x = MakeCast(DType::kI32, number);
  const Expr wrapped = is_signed ? Mod(x + count / 2, count) - count / 2 : Mod(x, count);
  return MakeCast(storage, wrapped);
}

}  // namespace

bool IsHeldAsBits(int type) {
  return type == kFloat8E4M3FNUZ || type == kFloat8E5M2FNUZ || type == kFloat4E2M1 || type == kFloat8E8M0;
}

int PackedBits(int type) {
  if (type == kInt4 || type == kUint4) return 4;
  return type == kInt2 || type == kUint2 ? 2 : 0;
}

bool IsFloat8Type(int type) {
  return type == kFloat8E4M3FN || type == kFloat8E4M3FNUZ || type == kFloat8E5M2 || type == kFloat8E5M2FNUZ;
}

std::function<Expr(const Expr&)> Decoder(GraphBuilder& g, int type) {
  if (!IsHeldAsBits(type)) return [](const Expr& element) { return element; };
  const int count = type == kFloat4E2M1 ? 16 : 256;
  std::vector<double> numbers;
  for (int bits = 0; bits < count; ++bits) numbers.push_back(NumberOfBits(type, bits));
  const Buffer table = AddTable(g, DType::kF32, numbers);
  return [table, count](const Expr& element) {
    return Load(table, {ClampTo(MakeCast(DType::kI64, element), IntConst(0), IntConst(count - 1))});
  };
}

Buffer Encoded(GraphBuilder& g, const Buffer& numbers, int type, const Encoding& encoding) {
  if (IsHeldAsBits(type)) return EncodedAsBits(g, numbers, type, encoding);
  const DType dtype = *StorageOf(type);
  return g.Map(numbers->shape, [&](const Axes& axes) {
    const Expr number = Load(numbers, axes);
    if (PackedBits(type) != 0) return EncodedPacked(number, type, dtype);
    return IsFloat8Type(type) ? EncodedFloat8(number, dtype, encoding.saturate) : MakeCast(dtype, number);
  });
}

}  // namespace mycc::onnx
