#include "tuner/cost/op_counts.h"

#include <algorithm>

namespace mycc {
namespace {

// Additions and multiplications are found in pairs on the way: a product that is added needs no instruction
// of its own.
bool IsFloatProduct(const Expr& expr) { return expr->op == Op::kMul && IsFloat(expr->dtype); }

// A condition that chooses one row of a table by an axis: schedules unroll the axis, and one arm is left.
bool ChoosesRow(const Expr& condition) {
  return condition->op == Op::kEq && condition->args[0]->dtype == DType::kI64 &&
         (IsConstInt(condition->args[0]) || IsConstInt(condition->args[1]));
}

double ArithmeticIn(const Expr& expr) {
  double sum = IsFloat(expr->dtype) && !expr->args.empty() && expr->op != Op::kLoad ? 1 : 0;
  for (const Expr& arg : expr->args) sum += ArithmeticIn(arg);
  return sum;
}

void Count(const Expr& expr, OpCounts* ops) {
  if (expr->op == Op::kLoad || expr->op == Op::kConst || expr->op == Op::kVar) return;
  if (expr->op == Op::kSelect && ChoosesRow(expr->args[0])) {
    const bool first = ArithmeticIn(expr->args[1]) >= ArithmeticIn(expr->args[2]);
    return Count(expr->args[first ? 1 : 2], ops);
  }
  if (expr->dtype == DType::kI64 && expr->op != Op::kCast) ops->integer += 1;
  switch (expr->op) {
    case Op::kAdd:
    case Op::kSub:
      ops->add += 1;
      if (IsFloat(expr->dtype) && (IsFloatProduct(expr->args[0]) || IsFloatProduct(expr->args[1])))
        ops->fused += 1;
      break;
    case Op::kMul: ops->mul += 1; break;
    case Op::kMin:
    case Op::kMax: ops->minmax += 1; break;
    case Op::kLt:
    case Op::kLe:
    case Op::kEq:
    case Op::kNe:
    case Op::kSelect:
    case Op::kAnd:
    case Op::kOr:
    case Op::kNot: ops->compare_select += 1; break;
    case Op::kDiv: ops->divide += 1; break;
    case Op::kFloorDiv:
    case Op::kMod: ops->divide += 1; break;
    case Op::kSqrt:
    case Op::kRsqrt: ops->root += 1; break;
    case Op::kCast: ops->convert += 1; break;
    default: (IsTranscendental(expr->op) ? ops->transcendental : ops->other) += 1; break;
  }
  for (const Expr& arg : expr->args) Count(arg, ops);
}

}  // namespace

OpCounts CountOps(const Block& block) {
  OpCounts ops;
  Count(block.value, &ops);
  switch (block.reduce) {
    case ReduceOp::kNone: break;
    case ReduceOp::kSum:
      ops.add += 1;
      if (IsFloatProduct(block.value)) ops.fused += 1;
      break;
    case ReduceOp::kProd: ops.mul += 1; break;
    case ReduceOp::kMax:
    case ReduceOp::kMin: ops.minmax += 1; break;
    case ReduceOp::kArgMax:
    case ReduceOp::kArgMin: ops.compare_select += 3; break;
  }
  return ops;
}

}  // namespace mycc
