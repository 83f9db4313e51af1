// Recognizes padding as a workload writes it: select(1 <= i && i < 9 && .., x[i - 1, ..], 0). Pure.
#pragma once

#include <optional>

#include "codegen/expr/affine.h"

namespace mycc {

// Along the axis, the places whose value is not certainly 0 by the select's condition; nullopt where the
// value is no such select, or its condition says nothing of the axis.
std::optional<Interval> ElementsAlong(const Expr& value, const Var& axis);

// The constant 0 of any type.
bool IsZero(const Expr& value);

// Whether the value is an element within bounds of single axes, and 0 elsewhere: nothing else is to be said
// of where it is which.
bool IsElementInBox(const Expr& value);

}  // namespace mycc
