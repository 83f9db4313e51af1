#include "codegen/ir/guards.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace mycc {
namespace {

bool IsAtLeastZero(const Linear& linear) {
  const std::optional<Interval> range = RangeOf(FromLinear(linear));
  return range && range->min >= 0;
}

// The variable v of an atom v, v // c or v % c: such an atom takes all values of its range.
const VarNode* FreeVar(const Expr& atom) {
  if (atom->op == Op::kVar) return atom->var.get();
  const bool divides = atom->op == Op::kFloorDiv || atom->op == Op::kMod;
  return divides && atom->args[0]->op == Op::kVar && IsConstInt(atom->args[1]) ? atom->args[0]->var.get()
                                                                               : nullptr;
}

}  // namespace

void Guards::Assume(const Expr& condition, bool value) {
  if (condition->op == Op::kNot) return Assume(condition->args[0], !value);
  if (condition->op == (value ? Op::kAnd : Op::kOr)) {
    Assume(condition->args[0], value);
    return Assume(condition->args[1], value);
  }
  Guard guard{condition, {}};
  for (const Linear& fact : FactsOf(condition, value))
    guard.at_least_zero.push_back(ToLinear(Simplify(FromLinear(fact))));
  guards_.push_back(std::move(guard));
}

void Guards::AssumeWithin(const Expr& index, const Expr& extent) {
  guards_.push_back(Guard{index + extent, {ToLinear(index), ToLinear(Simplify(extent - index - 1))}});
}

bool Guards::Mentions(const VarNode* var) const {
  return std::any_of(guards_.begin(), guards_.end(),
                     [var](const Guard& guard) { return UsesVar(guard.expr, var); });
}

bool Guards::ProvablyAtLeastZero(const Expr& expr) const {
  if (IsAtLeastZero(ToLinear(expr))) return true;
  for (const Guard& guard : guards_) {
    for (const Linear& known : guard.at_least_zero) {
      if (IsAtLeastZero(ToLinear(expr - FromLinear(known)))) return true;
    }
  }
  return false;
}

bool Guards::ProvablyInside(const Expr& index, int64_t extent) const {
  return ProvablyAtLeastZero(index) && ProvablyAtLeastZero(IntConst(extent - 1) - index);
}

bool Guards::ProvablyEscapes(const Expr& index, int64_t extent) const {
  const std::optional<Interval> range = RangeOf(index);
  if (!range || extent == 0 || (range->min >= 0 && range->max < extent)) return false;
  std::vector<const VarNode*> seen;
  for (const auto& [atom, coefficient] : ToLinear(index).terms) {
    const VarNode* var = FreeVar(atom);
    if (var == nullptr || Mentions(var) || std::find(seen.begin(), seen.end(), var) != seen.end())
      return false;
    seen.push_back(var);
  }
  return true;
}

}  // namespace mycc
