// Counts a workload's arithmetic operations and the bytes of its arguments (docs/language.md, "Counts").
#include <algorithm>
#include <unordered_map>

#include "codegen/workload/workload.h"

namespace mycc {
namespace {

bool IsArithmetic(Op op) {
  switch (op) {
    case Op::kNeg:
    case Op::kAbs:
    case Op::kExp:
    case Op::kExp2:
    case Op::kLog:
    case Op::kSqrt:
    case Op::kRsqrt:
    case Op::kTanh:
    case Op::kErf:
    case Op::kSin:
    case Op::kCos:
    case Op::kFloor:
    case Op::kCeil:
    case Op::kRound:
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kDiv:
    case Op::kFloorDiv:
    case Op::kMod:
    case Op::kMin:
    case Op::kMax:
    case Op::kPow: return true;
    default: return false;
  }
}

struct Cost {
  double operations = 0;
  bool reads_data = false;
};

// Arithmetic on axes only is index arithmetic and costs nothing. A select costs its more expensive arm.
Cost CostOf(const Expr& expr, std::unordered_map<const ExprNode*, Cost>* known) {
  if (const auto it = known->find(expr.get()); it != known->end()) return it->second;
  Cost cost;
  if (expr->op == Op::kLoad) {
    cost.reads_data = true;
  } else if (expr->op == Op::kSelect) {
    const Cost condition = CostOf(expr->args[0], known), a = CostOf(expr->args[1], known),
               b = CostOf(expr->args[2], known);
    cost = {condition.operations + std::max(a.operations, b.operations), a.reads_data || b.reads_data};
  } else {
    for (const Expr& arg : expr->args) {
      const Cost operand = CostOf(arg, known);
      cost.operations += operand.operations;
      cost.reads_data |= operand.reads_data;
    }
    const bool index = expr->dtype == DType::kI64 && !cost.reads_data;
    if (IsArithmetic(expr->op) && !index) cost.operations += 1;
  }
  return (*known)[expr.get()] = cost;
}

double Product(const std::vector<Var>& axes) {
  double product = 1;
  for (const Var& axis : axes) product *= static_cast<double>(axis->extent);
  return product;
}

}  // namespace

double CountFlops(const Workload& workload) {
  double flops = 0;
  for (const Stage& stage : workload.stages) {
    std::unordered_map<const ExprNode*, Cost> known;
    const double combine = stage.reduce == ReduceOp::kNone ? 0 : 1;
    flops +=
        Product(stage.axes) * Product(stage.reduce_axes) * (CostOf(stage.value, &known).operations + combine);
  }
  return flops;
}

double CountBytes(const Workload& workload) {
  double bytes = 0;
  for (const Argument& input : workload.inputs) bytes += static_cast<double>(input.tensor->bytes());
  for (const Buffer& output : workload.outputs) bytes += static_cast<double>(output->bytes());
  return bytes;
}

}  // namespace mycc
