#include "codegen/schedule/padding.h"

#include <algorithm>

namespace mycc {
namespace {

// The margin of a comparison: it is at least 0 exactly when the comparison holds.
std::optional<Linear> AtLeastZero(const Expr& condition) {
  const Expr margin = MarginOf(condition);
  return margin ? std::optional<Linear>(ToLinear(margin)) : std::nullopt;
}

// Narrows the range of the axis to where the condition may hold, by its comparisons of the axis with
// constants.
void Restrict(const Expr& condition, const Var& axis, Interval* places) {
  if (condition->op == Op::kAnd) {
    for (const Expr& part : condition->args) Restrict(part, axis, places);
    return;
  }
  const std::optional<Linear> at_least_zero = AtLeastZero(condition);
  if (!at_least_zero || at_least_zero->terms.size() != 1) return;
  const int64_t step = at_least_zero->CoefficientOf(axis.get());
  if (step == 1) places->min = std::max(places->min, -at_least_zero->constant);
  if (step == -1) places->max = std::min(places->max, at_least_zero->constant);
}

bool IsBox(const Expr& condition) {
  if (condition->op == Op::kAnd) return std::all_of(condition->args.begin(), condition->args.end(), IsBox);
  const std::optional<Linear> at_least_zero = AtLeastZero(condition);
  return at_least_zero && at_least_zero->terms.size() == 1 &&
         at_least_zero->terms.front().first->op == Op::kVar &&
         std::abs(at_least_zero->terms.front().second) == 1;
}

}  // namespace

bool IsZero(const Expr& value) {
  if (value->op != Op::kConst) return false;
  return IsFloat(value->dtype) ? value->value.f == 0 : value->value.i == 0;
}

std::optional<Interval> ElementsAlong(const Expr& value, const Var& axis) {
  if (value->op != Op::kSelect || !IsZero(value->args[2])) return std::nullopt;
  Interval elements{0, axis->extent - 1};
  Restrict(value->args[0], axis, &elements);
  const bool all = elements.min == 0 && elements.max == axis->extent - 1;
  return all || elements.max < elements.min ? std::nullopt : std::optional<Interval>(elements);
}

bool IsElementInBox(const Expr& value) {
  return value->op == Op::kSelect && IsZero(value->args[2]) && value->args[1]->op == Op::kLoad &&
         IsBox(value->args[0]);
}

}  // namespace mycc
