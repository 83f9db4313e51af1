// Element-wise arithmetic with broadcasting.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/operators.h"

namespace mycc::onnx {
namespace {

absl::Status Add(NodeImport& n) {
  return MapBinary(n, kTakesNumbers, [](const Expr& a, const Expr& b) { return a + b; });
}
absl::Status Sub(NodeImport& n) {
  return MapBinary(n, kTakesNumbers, [](const Expr& a, const Expr& b) { return a - b; });
}
absl::Status Mul(NodeImport& n) {
  return MapBinary(n, kTakesNumbers, [](const Expr& a, const Expr& b) { return a * b; });
}

bool IsUnsignedInput(const NodeImport& n) {
  const int type = n.Typed(0).type;
  return type == kUint8 || type == kUint16 || type == kUint32 || type == kUint64;
}

// Whether the floored quotient of two signed integers differs from the truncated one.
Expr IsFlooredBelow(const Expr& a, const Expr& b) {
  const Expr zero = IntConst(0, a->dtype);
  return MakeBinary(Op::kAnd, MakeBinary(Op::kNe, MakeBinary(Op::kMod, a, b), zero),
                    MakeBinary(Op::kNe, LessThan(a, zero), LessThan(b, zero)));
}

// ONNX's quotients of integers are truncated, the language's floored.
absl::Status Div(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectOneType(n, 0, 1, kTakesNumbers));
  const bool is_unsigned = IsUnsignedInput(n);
  return MapBinary(n, kTakesNumbers, [&](const Expr& a, const Expr& b) {
    if (IsFloat(a->dtype)) return Quotient(a, b);
    const Expr floored = MakeBinary(Op::kFloorDiv, a, b);
    return is_unsigned ? floored : floored + MakeCast(a->dtype, IsFlooredBelow(a, b));
  });
}

// The remainder of |x| by a divisor above 0, without |x|: one step. The quotient may be one off, for its
// division rounds.
Expr FmodStep(const Expr& x, const Expr& y) {
  const Expr zero = NumberLike(x, 0);
  const Expr rest = x - y * MakeUnary(Op::kFloor, Quotient(x, y));
  return MakeSelect(LessThan(rest, zero), rest + y, MakeSelect(AtMost(y, rest), rest - y, rest));
}

// The remainder with the sign of the dividend. In f64, a step is exact up to quotients of 2^28 for f32.
Expr FloatFmod(const Expr& a, const Expr& b) {
  const Expr x = MakeCast(DType::kF64, a), y = MakeCast(DType::kF64, b);
  const Expr divisor = Magnitude(y), infinity = NumberLike(y, std::numeric_limits<double>::infinity());
  Expr rest = Magnitude(x);
  if (a->dtype != DType::kF64) rest = FmodStep(rest, divisor * NumberLike(y, 0x1p28));
  rest = FmodStep(rest, divisor);
  const Expr is_small =
      MakeBinary(Op::kAnd, MakeBinary(Op::kEq, divisor, infinity), LessThan(Magnitude(x), infinity));
  const Expr rest_with_sign = MakeSelect(LessThan(x, NumberLike(x, 0)), Negative(rest), rest);
  return MakeCast(a->dtype, MakeSelect(is_small, x, rest_with_sign));
}

absl::Status Mod(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectOneType(n, 0, 1, kTakesNumbers));
  const bool is_fmod = n.Int("fmod", 0) != 0, is_unsigned = IsUnsignedInput(n);
  if (!is_fmod && IsFloat(n.Type(0))) return n.Refuse("floats without fmod = 1; expected integers");
  return MapBinary(n, kTakesNumbers, [&](const Expr& a, const Expr& b) {
    if (IsFloat(a->dtype)) return FloatFmod(a, b);
    const Expr floored = MakeBinary(Op::kMod, a, b);
    if (!is_fmod || is_unsigned) return floored;
    return MakeSelect(IsFlooredBelow(a, b), floored - b, floored);
  });
}

absl::Status Neg(NodeImport& n) { return MapUnary(n, kTakesFloats | kTakesSigned, Negative); }

absl::Status Abs(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesNumbers));
  const bool is_unsigned = IsUnsignedInput(n);
  return MapUnary(n, kTakesNumbers, [&](const Expr& x) { return is_unsigned ? x : Magnitude(x); });
}

template <Op op>
absl::Status FloatFunction(NodeImport& n) {
  return MapUnary(n, kTakesFloats, [](const Expr& x) { return MakeUnary(op, x); });
}

absl::Status Reciprocal(NodeImport& n) {
  return MapUnary(n, kTakesFloats, [](const Expr& x) { return Quotient(NumberLike(x, 1), x); });
}

// NaN and zeros keep their value.
absl::Status Sign(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesNumbers));
  const bool is_unsigned = IsUnsignedInput(n);
  return MapUnary(n, kTakesNumbers, [&](const Expr& x) {
    const Expr zero = NumberLike(x, 0), one = NumberLike(x, 1);
    if (is_unsigned) return MakeBinary(Op::kMin, x, one);
    return MakeSelect(LessThan(zero, x), one, MakeSelect(LessThan(x, zero), NumberLike(x, -1), x));
  });
}

// All inputs combined, broadcast to each other; `finish` makes the result of them. Many inputs become several
// stages, for an expression has a greatest depth.
absl::Status Variadic(NodeImport& n, unsigned takes, const BinaryFunction& combine,
                      const UnaryFunction& finish) {
  MYCC_RETURN_IF_ERROR(n.Expect(std::max<size_t>(n.num_inputs(), 1)));
  const size_t count = n.num_inputs();
  MYCC_RETURN_IF_ERROR(ExpectOneType(n, 0, count - 1, takes));
  MYCC_ASSIGN_OR_RETURN(const auto shape, BroadcastOfInputs(n, 0, count - 1));
  constexpr size_t kMostAtOnce = 32;
  Buffer result = n.In(0);
  for (size_t first = 0; first < count; first += kMostAtOnce) {
    const size_t end = std::min(first + kMostAtOnce, count);
    result = n.g().Map(shape, [&](const Axes& axes) {
      Expr value = BroadcastLoad(result, axes);
      for (size_t i = std::max<size_t>(first, 1); i < end; ++i)
        value = combine(value, BroadcastLoad(n.In(i), axes));
      return end == count ? finish(value) : value;
    });
  }
  n.Set(0, result);
  return absl::OkStatus();
}

Expr UnchangedSum(const Expr& value) { return value; }
Expr AddTwo(const Expr& a, const Expr& b) { return a + b; }

absl::Status Min(NodeImport& n) {
  return Variadic(
      n, kTakesNumbers, [](const Expr& a, const Expr& b) { return MakeBinary(Op::kMin, a, b); },
      UnchangedSum);
}
absl::Status Max(NodeImport& n) {
  return Variadic(
      n, kTakesNumbers, [](const Expr& a, const Expr& b) { return MakeBinary(Op::kMax, a, b); },
      UnchangedSum);
}
absl::Status Sum(NodeImport& n) { return Variadic(n, kTakesFloats, AddTwo, UnchangedSum); }
absl::Status Mean(NodeImport& n) {
  const auto count = static_cast<double>(n.num_inputs());
  return Variadic(n, kTakesFloats, AddTwo,
                  [&](const Expr& sum) { return count == 1 ? sum : Quotient(sum, NumberLike(sum, count)); });
}

// The bound of a clip: an input of one element, before opset 11 an attribute. Null without one.
absl::StatusOr<Expr> ClipBound(NodeImport& n, size_t input, const std::string& attribute) {
  if (n.opset() < 11) {
    return n.HasAttribute(attribute) ? FloatConst(n.Float(attribute, 0), n.Type(0)) : Expr();
  }
  if (!n.Has(input)) return Expr();
  if (n.Typed(input).type != n.Typed(0).type) {
    return n.Refuse(absl::StrCat(attribute, " is of type ", ElementTypeName(n.Typed(input).type),
                                 "; expected the input's, ", ElementTypeName(n.Typed(0).type)));
  }
  if (n.In(input)->num_elements() != 1)
    return n.Refuse(absl::StrCat(attribute, " is ", TypeText(n.In(input)), "; expected one number"));
  return OnlyElement(n.g(), n.In(input));
}

absl::Status Clip(NodeImport& n) {
  const unsigned takes = n.opset() < 11 ? kTakesFloats : kTakesNumbers;
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, takes));
  MYCC_ASSIGN_OR_RETURN(const Expr low, ClipBound(n, 1, "min"));
  MYCC_ASSIGN_OR_RETURN(const Expr high, ClipBound(n, 2, "max"));
  return MapUnary(n, takes, [&](const Expr& x) {
    const Expr raised = low == nullptr ? x : MakeBinary(Op::kMax, x, low);
    return high == nullptr ? raised : MakeBinary(Op::kMin, raised, high);
  });
}

constexpr Operator kArithmeticTable[] = {
    {"Abs", Abs},
    {"Add", Add},
    {"Ceil", FloatFunction<Op::kCeil>},
    {"Clip", Clip},
    {"Div", Div},
    {"Exp", FloatFunction<Op::kExp>},
    {"Floor", FloatFunction<Op::kFloor>},
    {"Log", FloatFunction<Op::kLog>},
    {"Max", Max},
    {"Mean", Mean},
    {"Min", Min},
    {"Mod", Mod, 10},
    {"Mul", Mul},
    {"Neg", Neg},
    {"Reciprocal", Reciprocal},
    {"Round", FloatFunction<Op::kRound>, 11},
    {"Sign", Sign, 9},
    {"Sqrt", FloatFunction<Op::kSqrt>},
    {"Sub", Sub},
    {"Sum", Sum},
};

}  // namespace

std::span<const Operator> ArithmeticOperators() { return kArithmeticTable; }

}  // namespace mycc::onnx
