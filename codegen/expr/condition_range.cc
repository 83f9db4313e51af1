#include "codegen/expr/condition_range.h"

#include <algorithm>

#include "codegen/expr/affine.h"
#include "codegen/expr/integers.h"

namespace mycc {
namespace {

// The range of v in [0, extent) in which c * v + [min, max] >= 0.
ConditionRange RangeOfAtLeastZero(int64_t c, const Interval& rest, int64_t extent) {
  const auto clamp = [extent](int64_t v) { return std::clamp<int64_t>(v, 0, extent); };
  if (c > 0)
    return {clamp(-FloorDivInt(rest.max, c)), clamp(-FloorDivInt(rest.min, c)), extent, extent, false};
  return {0, 0, clamp(FloorDivInt(rest.min, -c) + 1), clamp(FloorDivInt(rest.max, -c) + 1), false};
}

}  // namespace

std::optional<ConditionRange> RangeOfCondition(const Expr& condition, const VarNode* var, int64_t extent,
                                               const VarSet& inner) {
  const bool is_point = condition->op == Op::kEq && condition->args[0]->dtype == DType::kI64;
  const Expr margin = is_point ? condition->args[1] - condition->args[0] : MarginOf(condition);
  if (margin == nullptr) return std::nullopt;
  const auto linear = SplitLinear(margin, var);
  if (!linear || linear->coefficient == 0 || !UsesOnly(linear->rest, inner)) return std::nullopt;
  const auto rest = RangeOf(linear->rest);
  if (!rest) return std::nullopt;

  ConditionRange range;
  if (is_point) {
    // c * v + rest == 0 is decided only for a single point.
    const int64_t c = linear->coefficient;
    if (rest->min != rest->max || rest->min % c != 0) return std::nullopt;
    const int64_t at = -rest->min / c;
    if (at < 0 || at >= extent) return std::nullopt;
    range = {at, at, at + 1, at + 1, false};
  } else {
    range = RangeOfAtLeastZero(linear->coefficient, *rest, extent);
  }
  range.uses_inner = rest->min != rest->max;
  range.true_end = std::max(range.true_end, range.true_begin);
  if (range.true_begin >= range.true_end) range.true_begin = range.true_end = range.possible_end;
  return range;
}

}  // namespace mycc
