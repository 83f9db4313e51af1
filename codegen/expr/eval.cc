#include "codegen/expr/eval.h"

#include <cmath>

#include "base/check.h"
#include "codegen/expr/integers.h"

namespace mycc {
namespace {

double MaxFloat(double a, double b) {
  if (std::isnan(a)) return a;
  if (std::isnan(b)) return b;
  return a > b || (a == b && !std::signbit(a)) ? a : b;
}

double FloatOp(Op op, double a, double b) {
  switch (op) {
    case Op::kNeg: return -a;
    case Op::kAbs: return std::fabs(a);
    case Op::kExp: return std::exp(a);
    case Op::kExp2: return std::exp2(a);
    case Op::kLog: return std::log(a);
    case Op::kSqrt: return std::sqrt(a);
    case Op::kRsqrt: return 1.0 / std::sqrt(a);
    case Op::kTanh: return std::tanh(a);
    case Op::kErf: return std::erf(a);
    case Op::kSin: return std::sin(a);
    case Op::kCos: return std::cos(a);
    case Op::kFloor: return std::floor(a);
    case Op::kCeil: return std::ceil(a);
    case Op::kRound: return std::nearbyint(a);
    case Op::kTF32: return RoundToTF32(static_cast<float>(a));
    case Op::kAdd: return a + b;
    case Op::kSub: return a - b;
    case Op::kMul: return a * b;
    case Op::kDiv: return a / b;
    case Op::kPow: return std::pow(a, b);
    case Op::kMax: return MaxFloat(a, b);
    case Op::kMin: return -MaxFloat(-a, -b);
    default: break;
  }
  MYCC_CHECK(false) << "no " << OpName(op) << " of floats";
  return 0;
}

int64_t IntOp(Op op, DType dtype, int64_t a, int64_t b) {
  const bool is_u64 = dtype == DType::kU64, is_less = OrderOfInt(dtype, a) < OrderOfInt(dtype, b);
  switch (op) {
    case Op::kNeg: return WrapSub(0, a);
    case Op::kAbs: return a < 0 && !is_u64 ? WrapSub(0, a) : a;
    case Op::kNot: return a == 0;
    case Op::kAdd: return WrapAdd(a, b);
    case Op::kSub: return WrapSub(a, b);
    case Op::kMul: return WrapMul(a, b);
    case Op::kFloorDiv: return is_u64 ? DivUnsigned(a, b) : FloorDivInt(a, b);
    case Op::kMod: return is_u64 ? ModUnsigned(a, b) : FloorModInt(a, b);
    case Op::kMin: return is_less ? a : b;
    case Op::kMax: return is_less ? b : a;
    case Op::kAnd: return a != 0 && b != 0;
    case Op::kOr: return a != 0 || b != 0;
    default: break;
  }
  MYCC_CHECK(false) << "no " << OpName(op) << " of integers";
  return 0;
}

template <typename T>
bool Compare(Op op, T a, T b) {
  switch (op) {
    case Op::kLt: return a < b;
    case Op::kLe: return a <= b;
    case Op::kEq: return a == b;
    default: return a != b;
  }
}

}  // namespace

Scalar EvaluateOp(Op op, DType dtype, DType operand_dtype, const Scalar* args) {
  Scalar result;
  switch (op) {
    case Op::kCast: return ConvertScalar(dtype, operand_dtype, args[0]);
    case Op::kLt:
    case Op::kLe:
    case Op::kEq:
    case Op::kNe:
      result.i = IsFloat(operand_dtype) ? Compare(op, args[0].f, args[1].f)
                                        : Compare(op, OrderOfInt(operand_dtype, args[0].i),
                                                  OrderOfInt(operand_dtype, args[1].i));
      return result;
    default: break;
  }
  const Scalar& second = IsBinary(op) ? args[1] : args[0];
  if (IsFloat(dtype)) {
    const double value = FloatOp(op, args[0].f, second.f);
    // 8-bit floats are computed in f32; an overflow there gives infinity.
    result.f = RoundFloat(dtype, IsFloat8(dtype) ? RoundFloat(DType::kF32, value) : value);
  } else {
    result.i = WrapInt(dtype, IntOp(op, dtype, args[0].i, second.i));
  }
  return result;
}

Scalar EvaluateReduce(ReduceOp op, DType dtype, Scalar accumulator, Scalar value) {
  const Scalar args[] = {accumulator, value};
  return EvaluateOp(CombinerOf(op), dtype, dtype, args);
}

Scalar Evaluate(const Expr& expr, const EvalContext& context) {
  switch (expr->op) {
    case Op::kConst: return expr->value;
    case Op::kVar: return {.i = context.VarValue(*expr->var)};
    case Op::kLoad: {
      std::vector<int64_t> indices(expr->args.size());
      for (size_t d = 0; d < indices.size(); ++d) indices[d] = Evaluate(expr->args[d], context).i;
      return context.LoadElement(*expr->buffer, indices);
    }
    case Op::kSelect:
      return Evaluate(Evaluate(expr->args[0], context).i != 0 ? expr->args[1] : expr->args[2], context);
    default: break;
  }
  Scalar args[2];
  for (size_t i = 0; i < expr->args.size(); ++i) args[i] = Evaluate(expr->args[i], context);
  return EvaluateOp(expr->op, expr->dtype, expr->args[0]->dtype, args);
}

}  // namespace mycc
