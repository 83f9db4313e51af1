// Tracks the facts about index variables at a place in the IR, and proves whether an index stays in range
// there. Thread rule: thread-compatible.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/expr/affine.h"

namespace mycc {

// A conjunction of conditions over loop variables. It grows and shrinks during a walk over a nest.
class Guards {
 public:
  // `condition` (bool) has this truth value here.
  void Assume(const Expr& condition, bool value);
  // 0 <= `index` < `extent` here.
  void AssumeWithin(const Expr& index, const Expr& extent);

  // Restore(mark) drops the assumptions made since Mark() returned `mark`.
  size_t Mark() const { return guards_.size(); }
  void Restore(size_t mark) { guards_.resize(mark); }

  // True when an i64 expression is provably at least 0 wherever the guards hold. The proof uses ranges and at
  // most one guard.
  bool ProvablyAtLeastZero(const Expr& expr) const;
  // True when `index` is provably inside [0, extent) wherever the guards hold, each side by itself.
  bool ProvablyInside(const Expr& index, int64_t extent) const;
  // True when `index` provably takes a value outside [0, extent): it is linear in variables (or in the
  // quotient or remainder of one) that no guard mentions, so that all combinations occur. For correlated
  // indices neither this nor ProvablyInside is true; only execution decides those.
  bool ProvablyEscapes(const Expr& index, int64_t extent) const;
  // Whether any guard mentions the variable.
  bool Mentions(const VarNode* var) const;

 private:
  struct Guard {
    Expr expr;  // the source of its variables
    std::vector<Linear> at_least_zero;
  };

  std::vector<Guard> guards_;
};

}  // namespace mycc
