// Functions of single elements, and determinants.
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/float_functions.h"
#include "codegen/onnx/operators.h"

namespace mycc::onnx {
namespace {

template <Op op>
absl::Status Primitive(NodeImport& n) {
  return MapUnary(n, kTakesFloats, [](const Expr& x) { return MakeUnary(op, x); });
}

template <Expr (*function)(const Expr&)>
absl::Status Composed(NodeImport& n) {
  return MapUnaryWide(n, function);
}

// Up to opset 12, Erf took integers too.
absl::Status Erf(NodeImport& n) {
  return MapUnary(n, n.opset() < 13 ? kTakesNumbers : kTakesFloats, [](const Expr& x) {
    if (IsFloat(x->dtype)) return MakeUnary(Op::kErf, x);
    return MakeCast(x->dtype, MakeUnary(Op::kErf, MakeCast(DType::kF64, x)));
  });
}

bool IsFnuz(int type) { return type == kFloat8E4M3FNUZ || type == kFloat8E5M2FNUZ; }

absl::Status IsNan(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesFloats | kTakesFloat8s));
  const bool is_fnuz = IsFnuz(n.Typed(0).type);
  return MapUnary(n, kTakesFloats | kTakesFloat8s, [&](const Expr& x) {
    // The one NaN of these types has the bits of a negative zero.
    if (is_fnuz) return MakeBinary(Op::kEq, x, IntConst(0x80, x->dtype));
    return MakeBinary(Op::kNe, x, x);
  });
}

absl::Status IsInf(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesFloats | kTakesFloat8s));
  const int type = n.Typed(0).type;
  const bool has_infinity = !IsFnuz(type) && type != kFloat8E4M3FN;
  const bool negative = has_infinity && n.Int("detect_negative", 1) != 0;
  const bool positive = has_infinity && n.Int("detect_positive", 1) != 0;
  return MapUnary(n, kTakesFloats | kTakesFloat8s, [&](const Expr& x) {
    if (!negative && !positive) return BoolConst(false);
    const double infinity = std::numeric_limits<double>::infinity();
    if (negative && positive) return MakeBinary(Op::kEq, Magnitude(x), NumberLike(x, infinity));
    return MakeBinary(Op::kEq, x, NumberLike(x, positive ? infinity : -infinity));
  });
}

constexpr Operator kMathTable[] = {
    {"Acos", Composed<AcosOf>},
    {"Acosh", Composed<AcoshOf>, 9},
    {"Asin", Composed<AsinOf>},
    {"Asinh", Composed<AsinhOf>, 9},
    {"Atan", Composed<AtanOf>},
    {"Atanh", Composed<AtanhOf>, 9},
    {"Cos", Primitive<Op::kCos>},
    {"Cosh", Composed<CoshOf>, 9},
    {"Erf", Erf, 9},
    {"IsInf", IsInf, 10},
    {"IsNaN", IsNan, 9},
    {"Sin", Primitive<Op::kSin>},
    {"Sinh", Composed<SinhOf>, 9},
    {"Tan", Composed<TanOf>},
    {"Tanh", Primitive<Op::kTanh>},
};

}  // namespace

std::span<const Operator> MathOperators() { return kMathTable; }

}  // namespace mycc::onnx
