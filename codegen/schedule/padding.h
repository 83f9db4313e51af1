// Recognizes padding as a workload writes it: select(1 <= i && i < 9 && .., x[i - 1, ..], 0). Pure.
#pragma once

#include <optional>

#include "codegen/expr/affine.h"

namespace mycc {

// The range of the axis outside which the select's condition makes the value 0; nullopt when the value is not
// such a select, or its condition does not limit the axis.
std::optional<Interval> ElementsAlong(const Expr& value, const Var& axis);

// Whether the value is a loaded element inside a box of bounds on single axes, and 0 outside. Then the box
// alone decides between the two.
bool IsElementInBox(const Expr& value);

}  // namespace mycc
