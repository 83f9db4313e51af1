// Where a thread's chunk of a copy is. Threads copy in steps, which are unrolled: what depends on the thread
// alone should be computed once for all steps, and what depends on the step alone is a constant of the
// emitted code. Thread rule: a value.
#pragma once

#include <vector>

#include "codegen/expr/expr.h"

namespace mycc {

struct ChunkPlace {
  // Indices with sums in place of the loops' variables, so that the step's part is a term of its own: a
  // constant in an address.
  std::vector<Expr> Indices(std::vector<Expr> indices) const;

  // A condition with the same value, in a form for which each step has one comparison:
  //
  //   a + 8 * step < b && c < d   ->   8 * step < (c < d ? b - a : 0)
  //
  // The first comparison that depends on the step has this form. A condition with loads is only rewritten in
  // terms of the sums: loads stay behind what guards them.
  Expr Condition(const Expr& condition) const;

  std::vector<Var> of_thread, of_step;  // that the code defines; none is negative
  VarMap sums;                          // of the copy's loops that have two parts: of these variables

 private:
  bool DependsOnStep(const Expr& expr) const;
  Expr OneNumberForSteps(const Expr& comparison, const std::vector<Expr>& same) const;
};

}  // namespace mycc
