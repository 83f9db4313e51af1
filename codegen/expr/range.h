// Ranges of linear index forms, for RangeOf and for simplification (affine.cc). Pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "codegen/expr/affine.h"

namespace mycc {

// RangeOf for a linear form.
std::optional<Interval> RangeOfLinear(const Linear& linear);

}  // namespace mycc
