// Recognizes padding as a workload writes it: select(1 <= i && i < 9 && .., x[i - 1, ..], 0). Pure.
#pragma once

#include <optional>

#include "codegen/expr/affine.h"

namespace mycc {

// The range of the axis in which the value may differ from 0 by the select's condition; nullopt where the
// value is no such select, or its condition does not limit the axis.
std::optional<Interval> ElementsAlong(const Expr& value, const Var& axis);

// The constant 0 of any type.
bool IsZero(const Expr& value);

// Whether the value is an element inside a box of bounds on single axes, and 0 outside: the box alone then
// decides which.
bool IsElementInBox(const Expr& value);

}  // namespace mycc
