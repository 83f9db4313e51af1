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

// A positive number that divides every value of an i64 expression; 0 for the constant 0.
int64_t DivisorOf(const Expr& expr);

// The margin of an i64 comparison a < b or a <= b: it is at least 0 exactly when the comparison holds. Null
// for any other expression.
Expr MarginOf(const Expr& comparison);

// The row-major position of the element at `indices`.
Expr FlatIndex(const BufferNode& buffer, const std::vector<Expr>& indices);

// Splits an expression that is linear in `var`: expr == coefficient * var + rest, where rest is free of var.
// nullopt otherwise (var under a division, or in a data-dependent index).
struct LinearInVar {
  int64_t coefficient;
  Expr rest;
};
std::optional<LinearInVar> SplitLinear(const Expr& expr, const VarNode* var);

}  // namespace mycc
