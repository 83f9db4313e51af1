// Pow, whose operands may be of different types.
#include <cmath>
#include <optional>

#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/operators.h"

namespace mycc::onnx {
namespace {

// The exponent, when it is one known number.
std::optional<double> KnownExponent(const NodeImport& n) {
  const NDArray* value = n.Value(1);
  if (value == nullptr || value->num_elements() != 1) return std::nullopt;
  const Scalar number = value->Get(0);
  return IsFloat(value->dtype) ? number.f : IntToDouble(value->dtype, number.i);
}

// The exponents that exporters write: no power where a product or a root says the same. Null for others.
Expr SimplePower(const Expr& x, double exponent) {
  const auto one = [&] { return NumberLike(x, 1); };
  if (exponent == 1) return x;
  if (exponent == 2) return x * x;
  if (exponent == 3) return x * x * x;
  if (!IsFloat(x->dtype)) return nullptr;
  if (exponent == 0.5) return MakeUnary(Op::kSqrt, x);
  if (exponent == -0.5) return MakeUnary(Op::kRsqrt, x);
  if (exponent == -1) return Quotient(one(), x);
  if (exponent == -2) return Quotient(one(), x * x);
  return nullptr;
}

// An integer to the power of another, wrapping: the product of the squares that the exponent's bits select. A
// negative exponent gives the reciprocal, truncated.
Expr IntegerPower(const Expr& x, const Expr& exponent) {
  const Expr zero = IntConst(0, x->dtype), one = IntConst(1, x->dtype), minus_one = IntConst(-1, x->dtype);
  const Expr e = MakeCast(DType::kI64, exponent);
  Expr power = one, square = x;
  constexpr int kBits = 6;
  for (int bit = 0; bit < kBits; ++bit) {
    const Expr is_set = MakeBinary(Op::kEq, Mod(FloorDiv(e, int64_t{1} << bit), 2), IntConst(1));
    power = power * MakeSelect(is_set, square, one);
    square = square * square;
  }
  // Beyond, powers of anything but 0, 1 and -1 have left the type.
  const Expr is_kept = MakeBinary(Op::kAnd, AtMost(IntConst(0), e), LessThan(e, IntConst(1 << kBits)));
  const Expr is_odd = MakeBinary(Op::kEq, Mod(e, 2), IntConst(1));
  const Expr of_others = MakeSelect(is_kept, power, zero);
  return MakeSelect(
      MakeBinary(Op::kEq, x, one), one,
      MakeSelect(MakeBinary(Op::kEq, x, minus_one), MakeSelect(is_odd, minus_one, one), of_others));
}

// An integer to the power of a float, truncated. A result that lies within the error of pow from an integer
// is that integer.
Expr IntegerPowerOfFloat(const Expr& x, const Expr& exponent) {
  const Expr power = MakeBinary(Op::kPow, MakeCast(DType::kF64, x), MakeCast(DType::kF64, exponent));
  const Expr nearest = MakeUnary(Op::kRound, power);
  const Expr is_integer = AtMost(Magnitude(power - nearest), Magnitude(nearest) * NumberLike(power, 0x1p-49));
  return MakeCast(x->dtype, MakeSelect(is_integer, nearest, power));
}

// Different types are computed in a float that holds both.
Expr FloatPower(const Expr& x, const Expr& exponent) {
  if (x->dtype == exponent->dtype) return MakeBinary(Op::kPow, x, exponent);
  const bool is_f64 = x->dtype == DType::kF64 || exponent->dtype == DType::kF64;
  const DType wide = is_f64 ? DType::kF64 : DType::kF32;
  return MakeCast(x->dtype, MakeBinary(Op::kPow, MakeCast(wide, x), MakeCast(wide, exponent)));
}

absl::Status Pow(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesNumbers));
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 1, kTakesNumbers));
  MYCC_ASSIGN_OR_RETURN(const auto shape, BroadcastOfInputs(n, 0, 1));
  const std::optional<double> known = KnownExponent(n);
  n.Set(0, n.g().Map(shape, [&](const Axes& axes) {
    const Expr x = BroadcastLoad(n.In(0), axes);
    if (known) {
      if (const Expr simple = SimplePower(x, *known)) return simple;
    }
    const Expr exponent = known ? OnlyElement(n.g(), n.In(1)) : BroadcastLoad(n.In(1), axes);
    if (IsFloat(x->dtype)) return FloatPower(x, exponent);
    return IsFloat(exponent->dtype) ? IntegerPowerOfFloat(x, exponent) : IntegerPower(x, exponent);
  }));
  return absl::OkStatus();
}

constexpr Operator kPowerTable[] = {
    {"Pow", Pow},
};

}  // namespace

std::span<const Operator> PowerOperators() { return kPowerTable; }

}  // namespace mycc::onnx
