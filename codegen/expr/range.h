// Ranges of linear index forms, for RangeOf and for simplification (affine.cc). Pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "codegen/expr/affine.h"

namespace mycc {

// a / b rounded down. REQUIRES: b > 0.
inline int64_t FloorDivide(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

// RangeOf for a linear form.
std::optional<Interval> RangeOfLinear(const Linear& linear);

}  // namespace mycc
