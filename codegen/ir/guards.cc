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

// Adds the facts that follow from a condition's truth value.
void AddFacts(const Expr& condition, bool value, Facts* facts) {
  if (condition->op == Op::kNot) return AddFacts(condition->args[0], !value, facts);
  if (condition->op == (value ? Op::kAnd : Op::kOr)) {
    AddFacts(condition->args[0], value, facts);
    return AddFacts(condition->args[1], value, facts);
  }
  for (const Linear& fact : FactsOf(condition, value)) facts->push_back(ToLinear(Simplify(FromLinear(fact))));
}

}  // namespace

void Guards::Assume(const Expr& condition, bool value) {
  assumptions_.push_back({condition, nullptr, value});
}

void Guards::AssumeWithin(const Expr& index, const Expr& extent) {
  assumptions_.push_back({index, extent, true});
}

void Guards::Restore(size_t mark) {
  assumptions_.resize(mark);
  if (ends_.size() > mark) ends_.resize(mark);
  facts_.resize(ends_.empty() ? 0 : ends_.back());
}

const Facts& Guards::AllFacts() const {
  while (ends_.size() < assumptions_.size()) {
    const Assumption& next = assumptions_[ends_.size()];
    if (next.extent == nullptr) {
      AddFacts(next.condition, next.value, &facts_);
    } else {
      facts_.insert(facts_.end(),
                    {ToLinear(next.condition), ToLinear(Simplify(next.extent - next.condition - 1))});
    }
    ends_.push_back(facts_.size());
  }
  return facts_;
}

bool Guards::Mentions(const VarNode* var) const {
  return std::ranges::any_of(assumptions_, [var](const Assumption& assumed) {
    return UsesVar(assumed.condition, var) || (assumed.extent != nullptr && UsesVar(assumed.extent, var));
  });
}

bool Guards::ProvablyAtLeastZero(const Expr& expr) const {
  const Linear linear = ToLinear(expr);
  const auto at_least_zero = [&linear](const Facts& facts) {
    const std::optional<int64_t> lower = RangeUnder(linear, facts, Arithmetic::kWraps, /*effort=*/1).lower;
    return lower && *lower >= 0;
  };
  return at_least_zero({}) || at_least_zero(AllFacts());
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
