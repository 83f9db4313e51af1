// Recognizes sums of products, which contractions are made of. Pure.
#pragma once

#include <algorithm>
#include <vector>

#include "codegen/expr/expr.h"

namespace mycc {

// Whether a stage or block adds up products.
template <typename Reduction>
bool SumsProducts(const Reduction& of) {
  return of.reduce == ReduceOp::kSum && of.value->op == Op::kMul;
}

// The element that a factor is: loaded as it is, through a cast, or rounded by tf32(), as instructions widen
// and round it themselves. Null for a factor that is computed.
inline const ExprNode* LoadOfFactor(const Expr& factor) {
  const Expr& load = factor->op == Op::kCast || factor->op == Op::kTF32 ? factor->args[0] : factor;
  return load->op == Op::kLoad ? load.get() : nullptr;
}

// The axis that the expression is, by its place; -1: it is none.
inline int PlaceOf(const Expr& expr, const std::vector<Var>& axes) {
  const auto found = std::ranges::find(axes, expr->op == Op::kVar ? expr->var : nullptr);
  return found == axes.end() ? -1 : static_cast<int>(found - axes.begin());
}

// The one dimension of a tensor that the variable alone is the index of; -1: it stands in a larger
// expression, or nowhere.
inline int PlainDim(const std::vector<Expr>& index, const Var& var) {
  int found = -1;
  for (size_t d = 0; d < index.size(); ++d) {
    if (!UsesVar(index[d], var.get())) continue;
    if (found >= 0 || index[d]->op != Op::kVar) return -1;
    found = static_cast<int>(d);
  }
  return found;
}
inline int PlainDim(const Expr& load, const Var& var) { return PlainDim(load->args, var); }

// The same, where the variable runs from the dimension's beginning to its end.
inline int WholeDim(const ExprNode& load, const Var& var) {
  const int dim = PlainDim(load.args, var);
  return dim >= 0 && load.buffer->shape[dim] == var->extent ? dim : -1;
}

}  // namespace mycc
