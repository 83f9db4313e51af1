// Conditions as the parts of a conjunction, a && b && c. Pure functions.
#pragma once

#include <vector>

#include "codegen/expr/expr.h"

namespace mycc {

// The parts, in order and each once, behind those that `parts` has already.
void SplitConjunction(const Expr& condition, std::vector<Expr>* parts);
Expr JoinConjunction(const std::vector<Expr>& parts);  // true for none

}  // namespace mycc
