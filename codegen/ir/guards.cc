#include "codegen/ir/guards.h"

#include <algorithm>
#include <optional>

namespace mycc {
namespace {

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
  for (const Linear& fact : FactsOf(condition, value)) facts_.push_back(ToLinear(Simplify(FromLinear(fact))));
  if (facts_.size() == sources_.size()) facts_.emplace_back();  // 0 >= 0 for a condition that tells nothing
  sources_.resize(facts_.size(), condition);
}

void Guards::AssumeWithin(const Expr& index, const Expr& extent) {
  facts_.insert(facts_.end(), {ToLinear(index), ToLinear(Simplify(extent - index - 1))});
  sources_.resize(facts_.size(), index + extent);
}

bool Guards::Mentions(const VarNode* var) const { return UsesVar(sources_, var); }

bool Guards::ProvablyAtLeastZero(const Expr& expr) const {
  const std::optional<int64_t> lower =
      RangeUnder(ToLinear(expr), facts_, Arithmetic::kWraps, /*effort=*/1).lower;
  return lower && *lower >= 0;
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
    if (var == nullptr || Mentions(var) || std::ranges::find(seen, var) != seen.end()) return false;
    seen.push_back(var);
  }
  return true;
}

}  // namespace mycc
