#include "codegen/ir/block_guards.h"

#include <algorithm>

#include "codegen/ir/visit.h"

namespace mycc {

bool CarriesReduction(const Block& block, const For& loop) {
  return std::ranges::any_of(
      block.iters, [&](const IterVar& iter) { return iter.reduce && UsesVar(iter.binding, loop.var.get()); });
}

bool IsReduceLoop(const For& loop) {
  return AnyOf<Block>(loop.body, [&](const Block& block) { return CarriesReduction(block, loop); });
}

bool FollowsReduction(const Block& block, const Expr& binding) {
  return std::ranges::any_of(block.iters, [&](const IterVar& iter) {
    return iter.reduce && AnyExpr(iter.binding, [&](const ExprNode& e) {
             return e.op == Op::kVar && UsesVar(binding, e.var.get());
           });
  });
}

bool IsGuard(const Block& block, const IterVar& iter) {
  return !iter.reduce && !UsesVar(block.indices, iter.var.get());
}

bool GuardsTerms(const Block& block, const IterVar& iter) {
  return IsGuard(block, iter) && FollowsReduction(block, iter.binding);
}

}  // namespace mycc
