// The largest error of each operation on floats: the table "Accuracy" of docs/language.md. Back ends keep to
// it, and tests check them against it. Thread rule: pure functions.
#pragma once

#include "codegen/expr/expr.h"

namespace mycc {

// The largest error in units in the last place of the result's type; 0.5 is correct rounding. Zeros,
// infinities and NaN are always exact.
struct Accuracy {
  double cpu;
  double cuda;

  double any() const { return cpu > cuda ? cpu : cuda; }
};

// REQUIRES: `op` computes a float of type `dtype`.
Accuracy AccuracyOf(Op op, DType dtype);

// The distance from a number of this magnitude to the next one of the type. The exponent has no upper limit
// here.
double UnitInLastPlace(DType dtype, double magnitude);

}  // namespace mycc
