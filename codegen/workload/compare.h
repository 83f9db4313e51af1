// Compares a kernel's output with the reference's: integers exactly, floats within a tolerance, NaN and
// infinities by position. Pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "codegen/expr/dtype.h"
#include "codegen/workload/tolerance.h"

namespace mycc {

// The values that are expected of one tensor.
struct Expected {
  DType dtype;
  const uint8_t* values = nullptr;  // in storage form, one for each place
  std::vector<int64_t> places;      // flat indices; empty: all of them, in order
  int64_t count = 0;                // of values
};

// Whether an integer other than the expected one is right too. For argmax and argmin, which are compared by
// value.
using Excuse = std::function<bool(int64_t place, int64_t got, int64_t want)>;

struct Comparison {
  bool passed = true;
  double max_abs_error = 0;
  double max_rel_error = 0;  // relative to the value, or to 1 % of the tensor's scale if that is larger
  int64_t checked = 0;
  std::string first_mismatch;  // "element 17 is 1.5, expected 2 (within 1e-06)"
};

// `got` is the whole tensor in storage form.
Comparison Compare(const Expected& expected, const uint8_t* got, const Tolerance& tolerance,
                   const Excuse& excuse = nullptr);

// A value in an error message: nine digits; "nan" without a sign.
std::string PrintNumber(double value);

// The message for one element; `allowed` is the permitted error of a float.
std::string DescribeMismatch(DType dtype, int64_t place, const void* want, const void* have, double allowed);

}  // namespace mycc
