#include "codegen/expr/range.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "codegen/expr/integers.h"

namespace mycc {
namespace {

// Limits of the search among facts.
constexpr int64_t kMaxCoefficient = int64_t{1} << 30;
constexpr int kMaxSteps = 4096;

const Facts kNoFacts;

std::optional<int64_t> Checked(__int128 bound) {
  if (bound < -kMaxBound || bound > kMaxBound) return std::nullopt;
  return static_cast<int64_t>(bound);
}

// p * a - q * b, for small p and q.
Linear Combination(const Linear& a, int64_t p, const Linear& b, int64_t q) {
  Linear result = a;
  result.constant *= p;
  for (auto& term : result.terms) term.second *= p;
  AddScaled(&result, b, -q);
  return result;
}

bool IsWithin(const Linear& linear, int64_t limit) {
  const auto small = [limit](int64_t value) { return value >= -limit && value <= limit; };
  return small(linear.constant) &&
         std::ranges::all_of(linear.terms, [&](const auto& t) { return small(t.second); });
}

int64_t CoefficientOf(const Linear& linear, const Expr& atom) {
  for (const auto& [other, coefficient] : linear.terms) {
    if (StructurallyEqual(other, atom)) return coefficient;
  }
  return 0;
}

// Nullopt, no bound, is less than any number. So std::max is for lower bounds where one suffices, std::min
// where both are needed. Upper bounds where one suffices need this:
std::optional<int64_t> Smaller(std::optional<int64_t> a, std::optional<int64_t> b) {
  return !a || (b && *b < *a) ? b : a;
}

// One bound for both of two values.
std::optional<int64_t> LargerOfBoth(std::optional<int64_t> a, std::optional<int64_t> b) {
  return a && b ? std::optional(std::max(*a, *b)) : std::nullopt;
}

IndexRange RangeOfType(DType dtype) {
  if (IsFloat(dtype) || DTypeBytes(dtype) == 8) return {};
  const auto [lowest, highest] = RangeOfInt(dtype);
  return {lowest, highest};
}

class BoundFinder {
 public:
  BoundFinder(const Facts& facts, Arithmetic arithmetic) : facts_(facts), arithmetic_(arithmetic) {}

  IndexRange Of(const Expr& expr, int effort) {
    const bool narrows = effort > 0 && !facts_.empty();
    switch (expr->op) {
      case Op::kConst: return {Checked(expr->value.i), Checked(expr->value.i)};
      case Op::kAdd:
      case Op::kSub:
      case Op::kMul:
      case Op::kNeg: return OfLinear(ToLinear(expr), effort);
      default: return narrows ? OfLinear(ToLinear(expr), effort) : OfAtom(*expr, effort);
    }
  }

  // Bounds term by term, then subtracts multiples of facts that cancel a term, at most `effort` facts.
  IndexRange OfLinear(const Linear& linear, int effort) {
    IndexRange range = ByTerms(linear, effort);
    if (effort == 0 || facts_.empty() || linear.terms.empty()) return range;
    range.lower = std::max(range.lower, LowerByFacts(linear, effort));
    const auto negated = LowerByFacts(Negated(linear), effort);
    if (negated) range.upper = Smaller(range.upper, -*negated);
    return range;
  }

 private:
  std::optional<int64_t> LowerByFacts(const Linear& linear, int effort) {
    std::optional<int64_t> best;
    for (const Linear& fact : facts_) {
      for (const auto& [atom, coefficient] : linear.terms) {
        const int64_t other = CoefficientOf(fact, atom);
        if (other == 0 || (other < 0) != (coefficient < 0) || ++steps_ > kMaxSteps) continue;
        const int64_t divisor = std::gcd(other, coefficient);
        const int64_t p = std::abs(other / divisor), q = std::abs(coefficient / divisor);
        const int64_t limit = p == 1 && q == 1 ? kMaxBound : kMaxCoefficient;
        if (!IsWithin(linear, limit) || !IsWithin(fact, limit)) continue;
        const auto rest = OfLinear(Combination(linear, p, fact, q), effort - 1).lower;  // p * linear >= rest
        if (rest) best = std::max(best, std::optional(-FloorDivInt(-*rest, p)));
      }
    }
    return best;
  }

  IndexRange ByTerms(const Linear& linear, int effort) {
    IndexRange sum{Checked(linear.constant), Checked(linear.constant)};
    for (const auto& [atom, coefficient] : linear.terms) {
      IndexRange range = OfAtom(*atom, effort);
      if (coefficient < 0) std::swap(range.lower, range.upper);
      sum.lower = Sum(sum.lower, range.lower, coefficient);
      sum.upper = Sum(sum.upper, range.upper, coefficient);
      if (!sum.lower && !sum.upper) return {};
    }
    const bool is_atom = linear.terms.size() == 1 && linear.terms[0].second == 1 && linear.constant == 0;
    const bool may_wrap = arithmetic_ == Arithmetic::kWraps && !is_atom;
    return may_wrap && !(sum.lower && sum.upper) ? IndexRange() : sum;
  }

  static std::optional<int64_t> Sum(std::optional<int64_t> sum, std::optional<int64_t> bound,
                                    int64_t coefficient) {
    if (!sum || !bound) return std::nullopt;
    return Checked(*sum + static_cast<__int128>(*bound) * coefficient);
  }

  IndexRange OfOperand(const ExprNode& expr, int operand, int effort) {
    return Of(expr.args[operand], std::max(effort - 1, 0));
  }

  IndexRange OfAtom(const ExprNode& atom, int effort) {
    switch (atom.op) {
      case Op::kVar: return {0, std::max<int64_t>(atom.var->extent - 1, 0)};
      case Op::kCast: {
        const DType from = atom.args[0]->dtype;
        return DTypeBytes(from) < 4 || arithmetic_ == Arithmetic::kExact ? RangeOfType(from) : IndexRange();
      }
      case Op::kFloorDiv:
      case Op::kMod: return OfDivision(atom, effort);
      case Op::kMul: return OfProduct(OfOperand(atom, 0, effort), OfOperand(atom, 1, effort));
      case Op::kMin:
      case Op::kMax: {
        const IndexRange a = OfOperand(atom, 0, effort), b = OfOperand(atom, 1, effort);
        // min(a, b) is at most both upper bounds, and at least the smaller lower bound if both are known; max
        // is symmetric.
        if (atom.op == Op::kMax) return {std::max(a.lower, b.lower), LargerOfBoth(a.upper, b.upper)};
        return {std::min(a.lower, b.lower), Smaller(a.upper, b.upper)};
      }
      case Op::kSelect: {
        const IndexRange a = OfOperand(atom, 1, effort), b = OfOperand(atom, 2, effort);
        return {std::min(a.lower, b.lower), LargerOfBoth(a.upper, b.upper)};
      }
      default: return {};
    }
  }

  IndexRange OfDivision(const ExprNode& atom, int effort) {
    int64_t divisor = 0;
    if (!IsConstInt(atom.args[1], &divisor) || divisor <= 0) return {};
    IndexRange range = OfOperand(atom, 0, effort);
    if (atom.op == Op::kMod) {
      const bool is_own = range.lower && range.upper && *range.lower >= 0 && *range.upper < divisor;
      return is_own ? range : IndexRange{0, divisor - 1};
    }
    if (range.lower) range.lower = FloorDivInt(*range.lower, divisor);
    if (range.upper) range.upper = FloorDivInt(*range.upper, divisor);
    return range;
  }

  static IndexRange OfProduct(const IndexRange& a, const IndexRange& b) {
    if (!a.lower || !a.upper || !b.lower || !b.upper) return {};
    const auto times = [](int64_t x, int64_t y) { return static_cast<__int128>(x) * y; };
    const auto [least, most] = std::minmax({times(*a.lower, *b.lower), times(*a.lower, *b.upper),
                                            times(*a.upper, *b.lower), times(*a.upper, *b.upper)});
    return {Checked(least), Checked(most)};
  }

  const Facts& facts_;
  const Arithmetic arithmetic_;
  int steps_ = 0;
};

std::optional<Interval> IntervalOf(const IndexRange& range) {
  return range.lower && range.upper ? std::optional(Interval{*range.lower, *range.upper}) : std::nullopt;
}

}  // namespace

std::optional<Interval> RangeOfLinear(const Linear& linear) {
  return IntervalOf(BoundFinder(kNoFacts, Arithmetic::kWraps).OfLinear(linear, 0));
}

bool IsWithin(const Expr& index, int64_t extent) {
  const std::optional<Interval> range = RangeOf(index);
  return range && range->min >= 0 && range->max < extent;
}

std::optional<Interval> RangeOf(const Expr& expr) {
  return IntervalOf(BoundFinder(kNoFacts, Arithmetic::kWraps).Of(expr, 0));
}

IndexRange RangeUnder(const Linear& linear, const Facts& facts, Arithmetic arithmetic, int effort) {
  return BoundFinder(facts, arithmetic).OfLinear(linear, effort);
}

bool IsContradictory(const Facts& facts) {
  return std::ranges::any_of(facts, [&](const Linear& fact) {
    const auto upper = BoundFinder(facts, Arithmetic::kExact).OfLinear(fact, 1).upper;
    return upper && *upper < 0;
  });
}

}  // namespace mycc
