#include "codegen/cuda/chunk_place.h"

#include <algorithm>
#include <utility>

#include "codegen/expr/affine.h"
#include "codegen/expr/conjunction.h"

namespace mycc {

std::vector<Expr> ChunkPlace::Indices(std::vector<Expr> indices) const {
  if (sums.empty()) return indices;
  for (Expr& index : indices) index = Simplify(Substitute(index, sums));
  return indices;
}

bool ChunkPlace::DependsOnStep(const Expr& expr) const {
  return std::ranges::any_of(of_step, [&](const Var& var) { return UsesVar(expr, var.get()); });
}

// 8 * step < (same ? b - a : 0) for same && a + 8 * step < b, where `same` has one value for all steps. Null
// for other comparisons.
Expr ChunkPlace::OneNumberForSteps(const Expr& comparison, const std::vector<Expr>& same) const {
  if (comparison->op != Op::kLt || comparison->args[0]->dtype != DType::kI64) return nullptr;
  const Linear left = ToLinear(comparison->args[0]);
  Linear most = ToLinear(comparison->args[1]), steps;
  for (const auto& [atom, coefficient] : left.terms) {
    const bool is_step = atom->op == Op::kVar && std::ranges::count(of_step, atom->var) > 0;
    if (is_step && coefficient > 0) steps.terms.emplace_back(atom, coefficient);
  }
  if (steps.terms.empty()) return nullptr;
  AddScaled(&most, left, -1);
  AddScaled(&most, steps, 1);
  const Expr number = FromLinear(most);
  if (DependsOnStep(number)) return nullptr;
  return MakeBinary(Op::kLt, FromLinear(steps),
                    same.empty() ? number : MakeSelect(JoinConjunction(same), number, IntConst(0)));
}

Expr ChunkPlace::Condition(const Expr& condition) const {
  if (HasLoad(condition)) return Substitute(condition, sums);
  std::vector<Expr> parts, others;
  for (const Expr& part : Indices(SplitConjunction(condition)))
    (DependsOnStep(part) ? others : parts).push_back(part);
  if (others.empty()) return JoinConjunction(parts);
  if (const Expr first = OneNumberForSteps(others.front(), parts)) {
    others.front() = first;
    parts.clear();
  }
  parts.insert(parts.end(), others.begin(), others.end());
  return JoinConjunction(parts);
}

}  // namespace mycc
