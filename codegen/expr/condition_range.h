// Finds the part of a variable's range in which a condition holds: where loops are cut, and where tensors are
// padded. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "codegen/expr/expr.h"

namespace mycc {

// Iterations of a loop over [0, extent). In [true_begin, true_end) the condition holds in every iteration of
// the inner loops; outside [possible_begin, possible_end) it holds in none.
struct ConditionRange {
  int64_t possible_begin, true_begin, true_end, possible_end;
  bool uses_inner;  // the condition depends on inner loops too

  bool decides(int64_t extent) const {
    return true_begin < true_end || possible_begin > 0 || possible_end < extent;
  }
};

// nullopt when the condition does not depend on `var` linearly, or depends on something other than `var` and
// the `inner` variables.
std::optional<ConditionRange> RangeOfCondition(const Expr& condition, const VarNode* var, int64_t extent,
                                               const VarSet& inner);

}  // namespace mycc
