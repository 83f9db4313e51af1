// Reductions over axes, ArgMax and ArgMin. Sums of floats of 16 bits are made in f32.
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/operators.h"
#include "codegen/onnx/reduction_axes.h"
#include "codegen/onnx/rows.h"

namespace mycc::onnx {
namespace {

// The type in which sums of a type are computed. Integers with float results are summed in f64.
DType SumTypeOf(DType dtype, bool is_float_function) {
  if (!IsFloat(dtype)) return is_float_function ? DType::kF64 : dtype;
  return WideTypeOf(dtype);
}

// The result is `finish` of the sums or other reductions of `value`, both in the type of the sums.
Buffer ReducedValues(NodeImport& n, ReduceOp op, const ReducedAxes& reduced, DType sum_type,
                     const UnaryFunction& value, const UnaryFunction& finish) {
  const Buffer x = n.In(0);
  const Buffer sums = ReduceOver(n.g(), op, x->shape, reduced.axes, reduced.keeps_axes,
                                 [&](const Axes& at) { return value(MakeCast(sum_type, Load(x, at))); });
  return n.g().Map(sums->shape, [&](const Axes& at) { return MakeCast(x->dtype, finish(Load(sums, at))); });
}

absl::Status ReduceValues(NodeImport& n, ReduceOp op, bool is_float_function, const UnaryFunction& value,
                          const UnaryFunction& finish) {
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesNumbers));
  const DType sum_type = SumTypeOf(n.Type(0), is_float_function);
  return ReduceInput(
      n, [&](const ReducedAxes& reduced) { return ReducedValues(n, op, reduced, sum_type, value, finish); });
}

Expr Same(const Expr& x) { return x; }
Expr Square(const Expr& x) { return x * x; }
Expr LogOf(const Expr& x) { return MakeUnary(Op::kLog, x); }
Expr RootOf(const Expr& x) { return MakeUnary(Op::kSqrt, x); }

absl::Status ReduceSum(NodeImport& n) { return ReduceValues(n, ReduceOp::kSum, false, Same, Same); }
absl::Status ReduceProd(NodeImport& n) { return ReduceValues(n, ReduceOp::kProd, false, Same, Same); }
absl::Status ReduceL1(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesNumbers));
  const int type = n.Typed(0).type;
  const bool is_unsigned = type == kUint8 || type == kUint16 || type == kUint32 || type == kUint64;
  return ReduceValues(n, ReduceOp::kSum, false, is_unsigned ? Same : Magnitude, Same);
}
absl::Status ReduceL2(NodeImport& n) { return ReduceValues(n, ReduceOp::kSum, true, Square, RootOf); }
absl::Status ReduceLogSum(NodeImport& n) { return ReduceValues(n, ReduceOp::kSum, true, Same, LogOf); }
absl::Status ReduceSumSquare(NodeImport& n) { return ReduceValues(n, ReduceOp::kSum, false, Square, Same); }

// The mean of integers is truncated.
Expr MeanOf(const Expr& sum, int64_t count) {
  if (count == 1) return sum;
  if (IsFloat(sum->dtype)) return Quotient(sum, NumberLike(sum, static_cast<double>(count)));
  const Expr wide = MakeCast(DType::kI64, sum), divisor = IntConst(count);
  const Expr below = Negative(MakeBinary(Op::kFloorDiv, Negative(wide), divisor));
  return MakeCast(sum->dtype,
                  MakeSelect(LessThan(wide, IntConst(0)), below, MakeBinary(Op::kFloorDiv, wide, divisor)));
}

absl::Status ReduceMean(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesNumbers));
  return ReduceInput(n, [&](const ReducedAxes& reduced) {
    const int64_t count = CountOver(n.Shape(0), reduced.axes);
    return ReducedValues(n, ReduceOp::kSum, reduced, SumTypeOf(n.Type(0), false), Same,
                         [&](const Expr& sum) { return MeanOf(sum, count); });
  });
}

// log(sum(exp(x))), where the largest x is taken out. It is not where it is infinite: the sum of exp(x) tells
// the result then.
Buffer LogSumExpOver(NodeImport& n, const ReducedAxes& reduced) {
  GraphBuilder& g = n.g();
  const Buffer x = n.In(0);
  const DType type = SumTypeOf(x->dtype, true);
  const auto element = [&](const Axes& at) { return MakeCast(type, Load(x, at)); };
  const Buffer largest = ReduceOver(g, ReduceOp::kMax, x->shape, reduced.axes, true, element);
  const Buffer offset = g.Map(largest->shape, [&](const Axes& at) {
    const Expr value = Load(largest, at);
    const Expr infinity = FloatConst(std::numeric_limits<double>::infinity(), type);
    return MakeSelect(LessThan(Magnitude(value), infinity), value, FloatConst(0, type));
  });
  const Buffer sums = ReduceOver(g, ReduceOp::kSum, x->shape, reduced.axes, true, [&](const Axes& at) {
    return ExpOf(element(at) - BroadcastLoad(offset, at));
  });
  const Buffer result = g.Map(sums->shape, [&](const Axes& at) {
    return MakeCast(x->dtype, LogOf(Load(sums, at)) + Load(offset, at));
  });
  return g.AddReshape(result, ResultShape(x->shape, reduced));
}

absl::Status ReduceLogSumExp(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesNumbers));
  return ReduceInput(n, [&](const ReducedAxes& reduced) { return LogSumExpOver(n, reduced); });
}

// Bools are compared as numbers: the largest of none is false, the smallest true.
Buffer ExtremumOver(NodeImport& n, ReduceOp op, const ReducedAxes& reduced) {
  const Buffer x = n.In(0);
  const bool is_bool = x->dtype == DType::kBool;
  const Buffer result =
      ReduceOver(n.g(), op, x->shape, reduced.axes, reduced.keeps_axes,
                 [&](const Axes& at) { return is_bool ? MakeCast(DType::kI32, Load(x, at)) : Load(x, at); });
  if (!is_bool) return result;
  return n.g().Map(result->shape,
                   [&](const Axes& at) { return LessThan(IntConst(0, DType::kI32), Load(result, at)); });
}

absl::Status ReduceExtremum(NodeImport& n, ReduceOp op) {
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, n.opset() < 20 ? kTakesNumbers : kTakesPlain));
  return ReduceInput(n, [&](const ReducedAxes& reduced) { return ExtremumOver(n, op, reduced); });
}

absl::Status ReduceMax(NodeImport& n) { return ReduceExtremum(n, ReduceOp::kMax); }
absl::Status ReduceMin(NodeImport& n) { return ReduceExtremum(n, ReduceOp::kMin); }

// The index as ONNX gives it. The last one of several is the first of the reversed axis.
absl::Status ArgExtremum(NodeImport& n, ReduceOp op) {
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesNumbers));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 1, 16));
  MYCC_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(n.Int("axis", 0), n.Rank(0)));
  const Buffer x = n.In(0);
  const int64_t extent = x->shape[axis];
  if (extent == 0) return n.Refuse(absl::StrCat("axis ", axis, " of ", TypeText(x), " has no elements"));
  const bool takes_last = n.Int("select_last_index", 0) != 0;
  const Buffer index = ReduceOver(n.g(), op, x->shape, {axis}, n.Int("keepdims", 1) != 0, [&](Axes at) {
    if (takes_last) at[axis] = IntConst(extent - 1) - at[axis];
    return Load(x, at);
  });
  n.Set(0, n.g().Map(index->shape, [&](const Axes& axes) {
    const Expr found = MakeCast(DType::kI64, Load(index, axes));
    return takes_last ? IntConst(extent - 1) - found : found;
  }));
  return absl::OkStatus();
}

absl::Status ArgMax(NodeImport& n) { return ArgExtremum(n, ReduceOp::kArgMax); }
absl::Status ArgMin(NodeImport& n) { return ArgExtremum(n, ReduceOp::kArgMin); }

constexpr Operator kReductionTable[] = {
    {"ArgMax", ArgMax},
    {"ArgMin", ArgMin},
    {"ReduceL1", ReduceL1},
    {"ReduceL2", ReduceL2},
    {"ReduceLogSum", ReduceLogSum},
    {"ReduceLogSumExp", ReduceLogSumExp},
    {"ReduceMax", ReduceMax},
    {"ReduceMean", ReduceMean},
    {"ReduceMin", ReduceMin},
    {"ReduceProd", ReduceProd},
    {"ReduceSum", ReduceSum},
    {"ReduceSumSquare", ReduceSumSquare},
};

}  // namespace

std::span<const Operator> ReductionOperators() { return kReductionTable; }

}  // namespace mycc::onnx
