// Tracks the facts about index variables at a place in the IR, and proves whether an index stays in range
// there. Thread rule: thread-compatible.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/expr/affine.h"

namespace mycc {

// A conjunction of conditions over loop variables, growing and shrinking with the walk over a nest.
class Guards {
 public:
  // `condition` (bool) has this truth value here.
  void Assume(const Expr& condition, bool value);
  // 0 <= `index` < `extent` here.
  void AssumeWithin(const Expr& index, const Expr& extent);

  // To forget what was assumed since: Restore(mark) with mark = Mark() from before.
  size_t Mark() const { return guards_.size(); }
  void Restore(size_t mark) { guards_.resize(mark); }

  // True when `index` is inside [0, extent) wherever the guards hold, by ranges and at most one guard for
  // each side. False: not known.
  bool ProvablyInside(const Expr& index, int64_t extent) const;
  // True when `index` certainly takes a value outside [0, extent): it is linear in variables (or one's
  // quotient or remainder) that no guard mentions, so that all combinations occur. Neither this nor
  // ProvablyInside holds of correlated indices; running the code decides those.
  bool ProvablyEscapes(const Expr& index, int64_t extent) const;
  // Whether any guard mentions the variable.
  bool Mentions(const VarNode* var) const;

 private:
  struct Guard {
    Expr expr;  // for its variables
    std::vector<Linear> at_least_zero;
  };

  bool AtLeastZero(const Linear& linear) const;

  std::vector<Guard> guards_;
};

}  // namespace mycc
