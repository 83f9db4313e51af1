// The set of results that the language permits for an operation, given the sets of its operands: it covers
// rounding, fused products and the stated errors (expr/accuracy.h). A set may be larger than what is
// permitted, never smaller.
//
// Thread rule: a value, and pure functions.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "codegen/expr/expr.h"

namespace mycc {

// Floats: all numbers of a type from `low` to `high` (-0 is less than +0; low > high: none), and NaN if
// `nan`. Integers and bool: all from `least` to `most`, held as OrderOfInt of the type.
struct ValueSet {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  bool nan = false;
  int64_t least = 0, most = 0;
  // The constant 0 in an arm of a select, or what a mask makes 0: a sum may leave out terms with it.
  bool is_padding = false;
  // The constant -inf in an arm of a select: a mask, whose exponential is 0.
  bool is_masked = false;
  // An exponential of a difference, alone or over a sum: a weight, which may be rounded at another scale.
  bool is_weight = false;

  static ValueSet Only(DType dtype, Scalar value);
  static ValueSet Floats(double low, double high, bool nan = false);
  static ValueSet Integers(int64_t least, int64_t most);
  static ValueSet Anything(DType dtype);

  bool has_numbers() const;  // floats other than NaN
  bool has_zero() const;     // of either sign
  bool Contains(DType dtype, Scalar value) const;
};

ValueSet Hull(const ValueSet& a, const ValueSet& b);
// "1.5", "2 to 2.0000002", "nan", "-inf to inf or nan".
std::string Describe(DType dtype, const ValueSet& set);

// The operations of expr/eval.h (not kLoad, kVar, kSelect).
ValueSet PermittedOf(Op op, DType dtype, DType operand_dtype, const ValueSet* args);
// A product of floats that may be added before it is rounded (fused multiply-add).
ValueSet PermittedProduct(DType dtype, const ValueSet& a, const ValueSet& b);

// a < b in the order of a ValueSet: -0 is less than +0.
bool IsLess(double a, double b);

}  // namespace mycc
