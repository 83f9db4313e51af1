// Finds the part of a loop's range in which a condition holds, for partition_loops.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_set>

#include "codegen/expr/expr.h"

namespace mycc {

// Iterations of a loop over [0, extent): the condition holds in [true_begin, true_end) whatever the inner
// loops do, and in none outside [possible_begin, possible_end).
struct ConditionRange {
  int64_t possible_begin, true_begin, true_end, possible_end;
  bool uses_inner;  // depends on inner loops too

  bool decides(int64_t extent) const {
    return true_begin < true_end || possible_begin > 0 || possible_end < extent;
  }
};

// nullopt when the condition does not depend on `var` linearly, or depends on something other than `var` and
// the `inner` variables.
std::optional<ConditionRange> RangeOfCondition(const Expr& condition, const VarNode* var, int64_t extent,
                                               const std::unordered_set<const VarNode*>& inner);

}  // namespace mycc
