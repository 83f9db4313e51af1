#include "codegen/passes/lane_conditions.h"

#include <algorithm>

#include "codegen/expr/affine.h"

namespace mycc {

// The margin is negative where the condition is false. It must be lane + rest or rest - lane, with a rest
// that is a multiple of the number of lanes plus a constant. The constant decides whether the sign changes
// between two lanes.
bool LanesAgree(const Expr& condition, const VarNode* lane, int64_t lanes) {
  const Expr margin = MarginOf(condition);
  if (margin == nullptr) return false;
  const auto split = SplitLinear(Simplify(margin), lane);
  if (!split || (split->coefficient != 1 && split->coefficient != -1)) return false;
  const Linear rest = ToLinear(split->rest);
  const int64_t over = ((rest.constant % lanes) + lanes) % lanes;
  return over == (split->coefficient == 1 ? 0 : lanes - 1) &&
         std::all_of(rest.terms.begin(), rest.terms.end(),
                     [&](const auto& term) { return term.second % lanes == 0; });
}

}  // namespace mycc
