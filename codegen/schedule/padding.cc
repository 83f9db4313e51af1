#include "codegen/schedule/padding.h"

#include <algorithm>

#include "codegen/expr/condition_range.h"
#include "codegen/expr/conjunction.h"

namespace mycc {
namespace {

// The comparisons without which the value is 0; none for other values.
std::vector<Expr> ConditionsOf(const Expr& value) {
  std::vector<Expr> conditions;
  if (value->op == Op::kSelect && IsZero(value->args[2])) SplitConjunction(value->args[0], &conditions);
  return conditions;
}

// Whether it compares one variable with a constant.
bool IsSideOfBox(const Expr& condition) {
  const Expr margin = MarginOf(condition);
  const Linear linear = margin ? ToLinear(margin) : Linear();
  return linear.terms.size() == 1 && linear.terms.front().first->op == Op::kVar &&
         std::abs(linear.terms.front().second) == 1;
}

}  // namespace

std::optional<Interval> ElementsAlong(const Expr& value, const Var& axis) {
  const int64_t extent = axis->extent;
  Interval elements{0, extent - 1};
  for (const Expr& condition : ConditionsOf(value)) {
    const auto range = RangeOfCondition(condition, axis.get(), extent, /*inner=*/{});
    if (!range) continue;
    elements.min = std::max(elements.min, range->true_begin);
    elements.max = std::min(elements.max, range->true_end - 1);
  }
  const bool all = elements.min == 0 && elements.max == extent - 1;
  return all || elements.max < elements.min ? std::nullopt : std::optional<Interval>(elements);
}

bool IsElementInBox(const Expr& value) {
  const std::vector<Expr> conditions = ConditionsOf(value);
  return !conditions.empty() && value->args[1]->op == Op::kLoad &&
         std::ranges::all_of(conditions, IsSideOfBox);
}

}  // namespace mycc
