// The algebra behind stream_reduction: how a value depends on the result of a reduction that is still
// running, and so how sums of such values are corrected when that result changes. Pure functions.
//
// A value that depends on a result R is one of these, and everything else is refused in words:
//
//   g * h(R)          h is free of the streamed axis: sums of g are multiplied by h(R) after the last value
//   g * exp(c * R)    sums made with the old R become sums with the new R by the factor exp(c * (new - old));
//                     a number may stand for an infinite R
//
// The facts are: products and quotients multiply factors and add exponents; sums keep what both terms share;
// a linear exponent splits (exp(x + c*R) = exp(x) * exp(c*R)); a factor passes a rounding, as Accuracy in
// docs/language.md allows. Online softmax (Milakov and Gimelshein, 2018) and the accumulators of
// FlashAttention (Dao et al., 2022) are instances.
#pragma once

#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "codegen/expr/expr.h"

namespace mycc {

// value == rest * factor, and rest contains exp(exponent * R).
struct Dependence {
  Expr rest;
  Expr factor;          // null: 1
  double exponent = 0;  // 0: rest is free of R
  Expr result;          // the load of R in `rest` or `factor`; null when the value is free of R

  bool IsFree() const { return result == nullptr; }
  // The dependence of a tensor's element, from that of its value, whose variables are `at`. REQUIRES: not
  // free.
  Dependence OfElement(const Expr& load, const VarMap& at) const;
};

// Answers about the loads in a value; by default, about those of inputs.
struct LoadFacts {
  // The dependence of an element of another tensor than R: that of its own value, when the tensor is computed
  // from R, else a free one.
  std::function<absl::StatusOr<Dependence>(const Expr& load)> dependence = [](const Expr& load) {
    return Dependence{load};
  };
  // The expression that computes the element, over other variables; null for inputs and reductions.
  std::function<Expr(const Expr& load)> definition = [](const Expr&) { return nullptr; };
};

// A value that is R, and a finite number where R is an infinity: select(R == -inf, number, R), the same with
// the arms the other way round (select(R > -inf, R, number)), or max(R, lowest finite number).
struct GuardedResult {
  Expr result;  // the load of R
  double infinity;
};
std::optional<GuardedResult> GuardedResultOf(const Expr& value);

// How `value` depends on `result`. FailedPrecondition says which operation has no known correction.
absl::StatusOr<Dependence> DependenceOn(const Expr& value, const Buffer& result, const LoadFacts& loads);

// exponent == slope * R + rest, where R is the load of `result`. Where the exponent is linear in R, as
// DependenceOn requires, the rest is free of R.
struct SplitExponent {
  double slope = 0;
  Expr rest;    // null: 0
  Expr result;  // the load of R in slope * R; null when there is none
};
SplitExponent SplitOf(const Expr& exponent, const Buffer& result);

// value == factor * rest with a positive number, which is taken out of products, quotients by numbers, and
// selects whose other arm is infinite: max(c * x) = c * max(x).
struct PositiveFactor {
  double factor = 1;
  Expr rest;
};
PositiveFactor PositiveFactorOf(const Expr& value);

// value * factor; the value itself for 1.
Expr Times(const Expr& value, double factor);
// value * factor; a factor 1 / x divides.
Expr Multiplied(const Expr& value, const Expr& factor);

}  // namespace mycc
