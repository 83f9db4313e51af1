// Ranges of index expressions, by interval arithmetic over their linear forms.
#include "codegen/expr/range.h"

#include <algorithm>

#include "codegen/expr/integers.h"

namespace mycc {
namespace {

// Larger bounds count as unbounded, so that products of bounds never overflow.
constexpr int64_t kLimit = int64_t{1} << 60;

std::optional<Interval> Checked(__int128 min, __int128 max) {
  if (min < -kLimit || max > kLimit) return std::nullopt;
  return Interval{static_cast<int64_t>(min), static_cast<int64_t>(max)};
}

std::optional<Interval> ScaleInterval(const Interval& a, int64_t factor) {
  const __int128 x = static_cast<__int128>(a.min) * factor, y = static_cast<__int128>(a.max) * factor;
  return Checked(std::min(x, y), std::max(x, y));
}

std::optional<Interval> RangeOfProduct(const ExprNode& product) {
  const auto a = RangeOf(product.args[0]), b = RangeOf(product.args[1]);
  if (!a || !b) return std::nullopt;
  const auto at_min = ScaleInterval(*a, b->min), at_max = ScaleInterval(*a, b->max);
  if (!at_min || !at_max) return std::nullopt;
  return Interval{std::min(at_min->min, at_max->min), std::max(at_min->max, at_max->max)};
}

std::optional<Interval> RangeOfBinary(const ExprNode& expr) {
  const auto a = RangeOf(expr.args[0]), b = RangeOf(expr.args[1]);
  int64_t divisor = 0;
  const bool by_constant = IsConstInt(expr.args[1], &divisor) && divisor > 0;
  switch (expr.op) {
    case Op::kMod:
      if (!by_constant) return std::nullopt;
      if (a && a->min >= 0 && a->max < divisor) return a;
      return Interval{0, divisor - 1};
    case Op::kFloorDiv:
      if (!by_constant || !a) return std::nullopt;
      return Interval{FloorDivInt(a->min, divisor), FloorDivInt(a->max, divisor)};
    case Op::kMin:
      if (a && b) return Interval{std::min(a->min, b->min), std::min(a->max, b->max)};
      return std::nullopt;
    case Op::kMax:
      if (a && b) return Interval{std::max(a->min, b->min), std::max(a->max, b->max)};
      return std::nullopt;
    default: return std::nullopt;
  }
}

// min(max(x, low), high) and max(min(x, high), low) with x unbounded: the clamp of a loaded index. `outer` is
// the range of the outer bound, `inner` the inner min or max.
std::optional<Interval> RangeOfClamp(const ExprNode& expr, const Expr& inner, const Interval& outer) {
  if (inner->op != (expr.op == Op::kMin ? Op::kMax : Op::kMin)) return std::nullopt;
  auto bound = RangeOf(inner->args[0]);
  if (!bound) bound = RangeOf(inner->args[1]);
  if (!bound) return std::nullopt;
  if (expr.op == Op::kMin) return Interval{std::min(bound->min, outer.min), outer.max};
  return Interval{outer.min, std::max(bound->max, outer.max)};
}

}  // namespace

std::optional<Interval> RangeOfLinear(const Linear& linear) {
  Interval sum{linear.constant, linear.constant};
  for (const auto& [atom, coefficient] : linear.terms) {
    const auto range = RangeOf(atom);
    if (!range) return std::nullopt;
    const auto scaled = ScaleInterval(*range, coefficient);
    if (!scaled) return std::nullopt;
    const auto total =
        Checked(static_cast<__int128>(sum.min) + scaled->min, static_cast<__int128>(sum.max) + scaled->max);
    if (!total) return std::nullopt;
    sum = *total;
  }
  return sum;
}

std::optional<Interval> RangeOf(const Expr& expr) {
  switch (expr->op) {
    case Op::kConst: return Checked(expr->value.i, expr->value.i);
    case Op::kVar: return Interval{0, std::max<int64_t>(expr->var->extent - 1, 0)};
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kNeg: {
      const Linear linear = ToLinear(expr);
      // A product of two variables is its own only term.
      if (linear.terms.size() == 1 && linear.terms[0].first == expr) return RangeOfProduct(*expr);
      return RangeOfLinear(linear);
    }
    case Op::kSelect: {
      const auto a = RangeOf(expr->args[1]), b = RangeOf(expr->args[2]);
      if (!a || !b) return std::nullopt;
      return Interval{std::min(a->min, b->min), std::max(a->max, b->max)};
    }
    case Op::kCast: {
      const DType from = expr->args[0]->dtype;
      if (from == DType::kBool) return Interval{0, 1};
      if (from == DType::kU8) return Interval{0, 255};
      if (from == DType::kI8) return Interval{-128, 127};
      if (from == DType::kU16) return Interval{0, 65535};
      if (from == DType::kI16) return Interval{-32768, 32767};
      return std::nullopt;
    }
    case Op::kLoad: return std::nullopt;
    default:
      // min and max bound an operand that is itself unbounded (clamp of a loaded index).
      if (expr->op == Op::kMin || expr->op == Op::kMax) {
        const auto a = RangeOf(expr->args[0]), b = RangeOf(expr->args[1]);
        if (a && b) return RangeOfBinary(*expr);
        if (a) return RangeOfClamp(*expr, expr->args[1], *a);
        return b ? RangeOfClamp(*expr, expr->args[0], *b) : std::nullopt;
      }
      return IsBinary(expr->op) ? RangeOfBinary(*expr) : std::nullopt;
  }
}

}  // namespace mycc
