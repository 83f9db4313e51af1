#include "codegen/ir/block_guards.h"

#include <algorithm>

namespace mycc {

bool CarriesReduction(const Block& block, const For& loop) {
  return std::any_of(block.iters.begin(), block.iters.end(), [&](const IterVar& iter) {
    return iter.reduce && UsesVar(iter.binding, loop.var.get());
  });
}

bool IsGuard(const Block& block, const IterVar& iter) {
  if (iter.reduce) return false;
  return std::none_of(block.indices.begin(), block.indices.end(),
                      [&](const Expr& index) { return UsesVar(index, iter.var.get()); });
}

bool GuardsTerms(const Block& block, const IterVar& iter) {
  if (!IsGuard(block, iter)) return false;
  return std::any_of(block.iters.begin(), block.iters.end(), [&](const IterVar& other) {
    bool shares = false;
    if (other.reduce) {
      Visit(other.binding,
            [&](const ExprNode& e) { shares |= e.op == Op::kVar && UsesVar(iter.binding, e.var.get()); });
    }
    return shares;
  });
}

}  // namespace mycc
