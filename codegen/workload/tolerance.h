// The tolerance for a kernel's floats against the reference: the error that reordered sums and rounded
// intermediates can cause, and no more. Pure.
#pragma once

#include "codegen/workload/workload.h"

namespace mycc {

// |got - want| <= of_value * |want| + of_scale * scale, where scale is the largest finite |want| of the
// tensor, but at least the smallest normal number of its type.
struct Tolerance {
  double of_value = 0;
  double of_scale = 0;  // sums that cancel keep the error of their terms
};

// Derived from the number types that values pass through and the number of terms that are summed.
Tolerance ToleranceOf(const Workload& workload);

}  // namespace mycc
