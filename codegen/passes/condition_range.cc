#include "codegen/passes/condition_range.h"

#include <algorithm>

#include "codegen/expr/affine.h"

namespace mycc {
namespace {

int64_t FloorDivide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
int64_t CeilDivide(int64_t a, int64_t b) { return -FloorDivide(-a, b); }

bool UsesOnly(const Expr& expr, const std::unordered_set<const VarNode*>& vars) {
  if (expr->op == Op::kVar) return vars.count(expr->var.get()) > 0;
  if (expr->op == Op::kLoad) return false;
  return std::all_of(expr->args.begin(), expr->args.end(),
                     [&](const Expr& arg) { return UsesOnly(arg, vars); });
}

// The range of v in [0, extent) in which c * v + [min, max] <= 0.
ConditionRange RangeOfNotPositive(int64_t c, const Interval& rest, int64_t extent) {
  const auto clamp = [extent](int64_t v) { return std::clamp<int64_t>(v, 0, extent); };
  if (c > 0) {
    return {0, 0, clamp(FloorDivide(-rest.max, c) + 1), clamp(FloorDivide(-rest.min, c) + 1), false};
  }
  return {clamp(CeilDivide(rest.min, -c)), clamp(CeilDivide(rest.max, -c)), extent, extent, false};
}

}  // namespace

std::optional<ConditionRange> RangeOfCondition(const Expr& condition, const VarNode* var, int64_t extent,
                                               const std::unordered_set<const VarNode*>& inner) {
  const Op op = condition->op;
  if (op != Op::kLt && op != Op::kLe && op != Op::kEq) return std::nullopt;
  if (condition->args[0]->dtype != DType::kI64) return std::nullopt;
  Expr difference = condition->args[0] - condition->args[1];
  if (op == Op::kLt) difference = difference + 1;
  const auto linear = SplitLinear(difference, var);
  if (!linear || linear->coefficient == 0 || !UsesOnly(linear->rest, inner)) return std::nullopt;
  const auto rest = RangeOf(linear->rest);
  if (!rest) return std::nullopt;

  ConditionRange range;
  if (op == Op::kEq) {
    // c * v + rest == 0 is decided only for a single point.
    const int64_t c = linear->coefficient;
    if (rest->min != rest->max || rest->min % c != 0) return std::nullopt;
    const int64_t at = -rest->min / c;
    if (at < 0 || at >= extent) return std::nullopt;
    range = {at, at, at + 1, at + 1, false};
  } else {
    range = RangeOfNotPositive(linear->coefficient, *rest, extent);
  }
  range.uses_inner = rest->min != rest->max;
  range.true_end = std::max(range.true_end, range.true_begin);
  if (range.true_begin >= range.true_end) range.true_begin = range.true_end = range.possible_end;
  return range;
}

}  // namespace mycc
