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
// Whether an index is in [0, extent) by its range alone.
bool IsWithin(const Expr& index, int64_t extent);

// An i64 expression as constant + sum of coefficient * atom, where an atom is a variable, a load, or a floor
// division or modulo (or min/max/select) of such a sum. Terms are in order of first appearance, no atom
// twice, no zero coefficient.
struct Linear {
  int64_t constant = 0;
  std::vector<std::pair<Expr, int64_t>> terms;

  int64_t CoefficientOf(const VarNode* var) const;  // 0 when the variable is no atom of its own
};
Linear ToLinear(const Expr& expr);
void AddScaled(Linear* to, const Linear& from, int64_t factor);  // to += from * factor
Linear Negated(Linear linear);
Expr FromLinear(const Linear& linear);

// Canonical form: (8*a + b) / 8 -> a and (8*a + b) % 8 -> b for 0 <= b < 8, (f/J)*J + f%J -> f, comparisons
// decided by ranges. Works inside any expression (operands of loads and selects too); float arithmetic is
// left as it is.
Expr Simplify(const Expr& expr);
// Expressions in that form, with their variables replaced by values.
std::vector<Expr> SimplifiedAt(const std::vector<Expr>& exprs, const VarMap& values);

// The larger, or the smaller, of two i64 expressions: one of them where ranges tell which it is, and else a
// simplified max or min. REQUIRES: both are simplified.
Expr LargerOf(const Expr& a, const Expr& b);
Expr SmallerOf(const Expr& a, const Expr& b);

// A positive number that divides every value of an i64 expression; 0 for the constant 0.
int64_t DivisorOf(const Expr& expr);

// The margin, an i64, of a comparison a < b or a <= b of i64 or i32: it is at least 0 exactly when the
// comparison holds. Null for any other expression.
Expr MarginOf(const Expr& comparison);
// The atom of a margin, so that sums with it do not overflow: a value from memory that may be any i64, such
// as a length, is kept within +-2^61. The margin's sign stays, because its other terms are sizes.
Expr WithinSums(const Expr& atom);
// Linear forms that are all at least 0 exactly when the i64 comparison has this truth value. None for any
// other expression, and for a != b.
std::vector<Linear> FactsOf(const Expr& comparison, bool holds);

// The parts of 0 <= index < extent that ranges do not decide.
Expr Within(const Expr& index, int64_t extent);

// Whether every index is known to be within its dimension.
bool IsInside(const BufferNode& buffer, const std::vector<Expr>& indices);
// The offset of the element at `indices` by the layout, before its swizzle.
Expr OffsetOf(const Layout& layout, const std::vector<Expr>& indices);
// The number of the element at `indices`, row-major.
Expr FlatIndex(const BufferNode& buffer, const std::vector<Expr>& indices);

// The largest power of two, at most 64, that divides the offset of the element at `indices` without its term
// of `lane`, whose coefficient is 1: a vector with that number of lanes begins at a multiple of its size. 0
// where the coefficient is another one, or lanes are scattered.
int64_t AlignedLanes(const BufferNode& buffer, const std::vector<Expr>& indices, const VarNode& lane);

// Splits an expression that is linear in `var`: expr == coefficient * var + rest, where rest is free of var.
// nullopt otherwise (var under a division, or in a data-dependent index).
struct LinearInVar {
  int64_t coefficient;
  Expr rest;
};
std::optional<LinearInVar> SplitLinear(const Expr& expr, const VarNode* var);

// The coefficient alone: the elements that a step of `var` moves a flat index.
std::optional<int64_t> StrideOf(const Expr& flat, const VarNode* var);

// The values of var for which coefficient * var + rest >= 0: those from `first` on, or those before `end`.
// The other bound is null. REQUIRES: the coefficient is not 0.
struct HalfLine {
  Expr first, end;
};
HalfLine WhereAtLeastZero(const LinearInVar& linear);

// A linear form as the part that is free of some variables, and the range of the rest while these run.
// nullopt where that range is not known.
struct FreeAndRange {
  Linear free;  // with the constant
  Interval range;
};
std::optional<FreeAndRange> SplitByVars(const Linear& linear, const VarSet& vars);

}  // namespace mycc
