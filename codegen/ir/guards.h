// Tracks the facts about index variables at a place in the IR, and proves whether an index stays in range
// there. Thread rule: one owner.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/expr/range.h"

namespace mycc {

// A conjunction of conditions over loop variables. It grows and shrinks during a walk over a nest.
class Guards {
 public:
  // `condition` (bool) has this truth value here.
  void Assume(const Expr& condition, bool value);
  // 0 <= `index` < `extent` here.
  void AssumeWithin(const Expr& index, const Expr& extent);

  // Restore(mark) drops the assumptions made since Mark() returned `mark`.
  size_t Mark() const { return assumptions_.size(); }
  void Restore(size_t mark);

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
  struct Assumption {
    Expr condition;     // or the index that is within the extent
    Expr extent;        // null where it is a condition
    bool value = true;  // of the condition
  };

  // The facts that follow from all assumptions. They are derived when they are first asked for: most indices
  // stay in range by themselves.
  const Facts& AllFacts() const;

  std::vector<Assumption> assumptions_;
  mutable Facts facts_;               // of the first ends_.size() assumptions
  mutable std::vector<size_t> ends_;  // for each of these assumptions, the number of facts up to its last one
};

}  // namespace mycc
