// Conditions that differ between the lanes of a vector, which are consecutive values of a variable. Pure
// functions.
#pragma once

#include <cstdint>

#include "codegen/expr/expr.h"

namespace mycc {

// Whether a comparison is true for all of `lanes` consecutive values of the variable, the first of them a
// multiple of `lanes`, or for none: k < 12 for four lanes, but neither k <= 12 nor 3 < i + k. False where it
// cannot be told.
bool LanesAgree(const Expr& condition, const VarNode* lane, int64_t lanes);

}  // namespace mycc
