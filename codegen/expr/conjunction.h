// Conditions as the parts of a conjunction, a && b && c. Pure functions.
#pragma once

#include <vector>

#include "codegen/expr/expr.h"

namespace mycc {

// The parts of `condition`, in order and without duplicates. The second form appends them to `parts`.
std::vector<Expr> SplitConjunction(const Expr& condition);
void SplitConjunction(const Expr& condition, std::vector<Expr>* parts);
Expr JoinConjunction(const std::vector<Expr>& parts);  // true for none

}  // namespace mycc
