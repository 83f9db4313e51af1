// Conditions as the parts of a conjunction, a && b && c. Pure functions.
#pragma once

#include <vector>

#include "codegen/expr/expr.h"

namespace mycc {

// Appends the parts of `condition` to `parts`, in order and without duplicates.
void SplitConjunction(const Expr& condition, std::vector<Expr>* parts);
Expr JoinConjunction(const std::vector<Expr>& parts);  // true for none

}  // namespace mycc
