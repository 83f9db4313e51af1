// Quasi-affine index arithmetic: ranges, canonical simplification, and coefficients. The compiler's only
// algebra on indices.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "codegen/expr/expr.h"

namespace mycc {

// Closed interval of the values an i64 expression takes while every variable runs over its extent; nullopt
// where unbounded (a data-dependent load that is not clamped).
struct Interval {
  int64_t min;
  int64_t max;
};
std::optional<Interval> RangeOf(const Expr& expr);

// An i64 expression as constant + sum of coefficient * atom, where an atom is a variable, a load, or a floor
// division or modulo (or min/max/select) of such a sum. Terms are in order of first appearance, no atom
// twice, no zero coefficient.
struct Linear {
  int64_t constant = 0;
  std::vector<std::pair<Expr, int64_t>> terms;

  int64_t CoefficientOf(const VarNode* var) const;  // 0 when the variable is no atom of its own
};
Linear ToLinear(const Expr& expr);
Expr FromLinear(const Linear& linear);

// Canonical form: (8*a + b) / 8 -> a and (8*a + b) % 8 -> b for 0 <= b < 8, (f/J)*J + f%J -> f, comparisons
// decided by ranges. Works inside any expression (operands of loads and selects too); float arithmetic is
// left as it is.
Expr Simplify(const Expr& expr);

// A positive number that divides every value of an i64 expression; 0 of the constant 0, which all divide.
int64_t DivisorOf(const Expr& expr);

// The margin of a comparison a < b or a <= b of i64: at least 0 exactly when it holds. Null for all else.
Expr MarginOf(const Expr& comparison);

// The element that the indices name, counted from the buffer's first.
Expr FlatIndex(const BufferNode& buffer, const std::vector<Expr>& indices);

// When the only variable dependence on `var` is linear: expr == coefficient * var + rest, rest free of var.
// nullopt otherwise (var under a division, or in a data-dependent index).
struct LinearInVar {
  int64_t coefficient;
  Expr rest;
};
std::optional<LinearInVar> SplitLinear(const Expr& expr, const VarNode* var);

}  // namespace mycc
