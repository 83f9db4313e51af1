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

// One step of Gaussian elimination with partial pivoting on [batch, size, size]: the pivot, with the sign of
// the exchange of rows, and the matrices that are left.
struct Elimination {
  Buffer pivot, rest;
};

Elimination Eliminate(GraphBuilder& g, const Buffer& matrices) {
  const int64_t batch = matrices->shape[0], left = matrices->shape[1] - 1;
  const Buffer best = g.Reduce(ReduceOp::kArgMax, {batch}, {left + 1}, [&](const Axes& a, const Axes& r) {
    return Magnitude(Load(matrices, {a[0], r[0], IntConst(0)}));
  });
  const auto pivot_row = [&](const Expr& b, const Expr& column) {
    const Expr row = ClampTo(MakeCast(DType::kI64, Load(best, {b})), IntConst(0), IntConst(left));
    return Load(matrices, {b, row, column});
  };
  Elimination step;
  step.pivot = g.Map({batch}, [&](const Axes& a) {
    const Expr pivot = pivot_row(a[0], IntConst(0));
    return MakeSelect(MakeBinary(Op::kEq, Load(best, {a[0]}), IntConst(0, DType::kI32)), pivot,
                      Negative(pivot));
  });
  // The first row takes the pivot's place.
  step.rest = g.Map({batch, left, left}, [&](const Axes& a) {
    const Expr is_pivot = MakeBinary(Op::kEq, MakeCast(DType::kI64, Load(best, {a[0]})), a[1] + 1);
    const auto row = [&](const Expr& column) {
      return MakeSelect(is_pivot, Load(matrices, {a[0], IntConst(0), column}),
                        Load(matrices, {a[0], a[1] + 1, column}));
    };
    const Expr pivot = pivot_row(a[0], IntConst(0)), zero = NumberLike(pivot, 0);
    const Expr factor = MakeSelect(MakeBinary(Op::kEq, pivot, zero), zero, Quotient(row(IntConst(0)), pivot));
    return row(a[2] + 1) - factor * pivot_row(a[0], a[2] + 1);
  });
  return step;
}

absl::Status Det(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesFloats));
  const std::vector<int64_t>& shape = n.Shape(0);
  const size_t rank = shape.size();
  if (rank < 2 || shape[rank - 1] != shape[rank - 2])
    return n.Refuse(absl::StrCat("input 0 is ", TypeText(n.In(0)), "; expected square matrices"));
  constexpr int64_t kLargest = 64;  // each row is a step of its own
  const int64_t size = shape[rank - 1];
  if (size > kLargest) return n.NotSupported(absl::StrCat("a determinant of ", size, " rows"));
  const std::vector<int64_t> outer(shape.begin(), shape.end() - 2);
  const int64_t batch = ElementsOf(outer);
  const DType dtype = n.Type(0), wide = IsNarrowFloat(dtype) ? DType::kF32 : dtype;
  Buffer matrices = n.g().AddReshape(n.g().Cast(n.In(0), wide), {batch, size, size});
  Buffer product = n.g().Map({batch}, [&](const Axes&) { return FloatConst(1, wide); });
  for (int64_t left = size; left > 0; --left) {
    const Elimination step = Eliminate(n.g(), matrices);
    const Buffer before = product;
    product =
        n.g().Map({batch}, [&](const Axes& a) { return Load(before, {a[0]}) * Load(step.pivot, {a[0]}); });
    matrices = step.rest;
  }
  n.Set(0, n.g().AddReshape(n.g().Cast(product, dtype), outer));
  return absl::OkStatus();
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
    {"Det", Det, 11},
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
