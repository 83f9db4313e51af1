#include "codegen/passes/element_offset.h"

#include <numeric>

namespace mycc {
namespace {

// The same for one linear form, whatever its coefficient of `lane`.
int64_t CommonDivisor(const Linear& linear, const VarNode* lane, int64_t most) {
  int64_t common = std::gcd(most, linear.constant);
  for (const auto& [atom, coefficient] : linear.terms) {
    if (atom->op == Op::kVar && atom->var.get() == lane) continue;
    common = UsesVar(atom, lane) ? 1 : std::gcd(common, coefficient);
  }
  return common;
}

}  // namespace

int64_t ConsecutiveElements(const Layout& layout, const std::vector<Expr>& indices, const VarNode* lane,
                            int64_t most) {
  // A dimension of one element has a single index, which moves nothing.
  const Linear offset = ToLinear(Simplify(OffsetOf(layout.Coalesced(), indices)));
  return offset.CoefficientOf(lane) == 1 ? CommonDivisor(offset, lane, most) : 1;
}

}  // namespace mycc
