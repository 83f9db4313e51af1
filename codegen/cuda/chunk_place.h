// The place of a thread's chunk in a copy, as emitted code computes it. A thread copies one chunk in each
// step, and the steps are unrolled. Terms that depend on the thread alone are computed once for all steps.
// Terms that depend on the step alone are constants. Thread rule: a value.
#pragma once

#include <vector>

#include "codegen/expr/expr.h"

namespace mycc {

struct ChunkPlace {
  // Indices with sums in place of the loops' variables. The step's part is a term of its own then, which is a
  // constant in an address.
  std::vector<Expr> Indices(std::vector<Expr> indices) const;

  // A condition with the same value, in a form for which each step has one comparison:
  //
  //   a + 8 * step < b && c < d   ->   8 * step < (c < d ? b - a : 0)
  //
  // The first comparison that depends on the step has this form. A condition with loads is only rewritten in
  // terms of the sums: loads stay behind what guards them.
  Expr Condition(const Expr& condition) const;

  std::vector<Var> of_thread, of_step;  // variables that the code defines; none is negative
  VarMap sums;                          // sums of two of them, for the copy's loops that have both parts

 private:
  bool DependsOnStep(const Expr& expr) const;
  Expr OneNumberForSteps(const Expr& comparison, const std::vector<Expr>& same) const;
};

}  // namespace mycc
