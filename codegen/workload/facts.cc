// Converts conditions to linear inequalities, and derives bounds of an expression from ranges and sums of a
// few inequalities.
#include "codegen/workload/facts.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "codegen/expr/integers.h"
#include "codegen/workload/index.h"
#include "codegen/workload/limits.h"

namespace mycc {
namespace {

// Limits of the proof search. Beyond them bounds get weaker, never wrong.
constexpr size_t kMaxCases = 16;
constexpr size_t kMaxFacts = 16;
constexpr int64_t kMaxCoefficient = int64_t{1} << 30;
constexpr int kEffort = 3;
constexpr int kMaxSteps = 4096;

// p * a - q * b, for small p and q.
Linear Combination(const Linear& a, int64_t p, const Linear& b, int64_t q) {
  Linear result;
  result.constant = a.constant * p - b.constant * q;
  result.terms = a.terms;
  for (auto& term : result.terms) term.second *= p;
  for (const auto& [atom, coefficient] : b.terms) {
    const auto same =
        std::find_if(result.terms.begin(), result.terms.end(),
                     [&atom = atom](const auto& term) { return StructurallyEqual(term.first, atom); });
    if (same == result.terms.end()) {
      result.terms.emplace_back(atom, -coefficient * q);
    } else if ((same->second -= coefficient * q) == 0) {
      result.terms.erase(same);
    }
  }
  return result;
}

bool IsSmall(const Linear& linear) {
  const auto small = [](int64_t value) { return value >= -kMaxCoefficient && value <= kMaxCoefficient; };
  return small(linear.constant) && std::all_of(linear.terms.begin(), linear.terms.end(),
                                               [&](const auto& t) { return small(t.second); });
}

int64_t CoefficientOf(const Linear& linear, const Expr& atom) {
  for (const auto& [other, coefficient] : linear.terms) {
    if (StructurallyEqual(other, atom)) return coefficient;
  }
  return 0;
}

std::optional<int64_t> Larger(std::optional<int64_t> a, std::optional<int64_t> b) {
  return !a || (b && *b > *a) ? b : a;
}

class BoundFinder {
 public:
  explicit BoundFinder(const Facts& facts) : facts_(facts) {}

  // Bounds term by term, then subtracts multiples of facts (each >= 0) that cancel a term, at most `effort`
  // facts.
  IndexRange Range(const Linear& linear, int effort) {
    IndexRange range = RangeByTerms(linear, effort);
    if (effort == 0 || linear.terms.empty() || !IsSmall(linear)) return range;
    range.lower = Larger(range.lower, LowerByFacts(linear, effort));
    const auto negated = LowerByFacts(Negated(linear), effort);
    if (negated) range.upper = range.upper ? std::min(*range.upper, -*negated) : -*negated;
    return range;
  }

 private:
  std::optional<int64_t> LowerByFacts(const Linear& linear, int effort) {
    std::optional<int64_t> best;
    for (const Linear& fact : facts_) {
      for (const auto& [atom, coefficient] : linear.terms) {
        const int64_t other = CoefficientOf(fact, atom);
        if (other == 0 || (other < 0) != (coefficient < 0) || !IsSmall(fact) || ++steps_ > kMaxSteps)
          continue;
        const int64_t divisor = std::gcd(other, coefficient);
        const int64_t p = std::abs(other / divisor), q = std::abs(coefficient / divisor);
        const auto rest = Range(Combination(linear, p, fact, q), effort - 1).lower;  // p * linear >= rest
        if (rest) best = Larger(best, -FloorDivInt(-*rest, p));
      }
    }
    return best;
  }

  IndexRange RangeByTerms(const Linear& linear, int effort) {
    std::optional<__int128> lower = linear.constant, upper = linear.constant;
    for (const auto& [atom, coefficient] : linear.terms) {
      IndexRange range = RangeOfAtom(atom, effort);
      if (coefficient < 0) std::swap(range.lower, range.upper);
      lower = Accumulate(lower, range.lower, coefficient);
      upper = Accumulate(upper, range.upper, coefficient);
    }
    return {lower, upper};
  }

  static std::optional<__int128> Accumulate(std::optional<__int128> sum, std::optional<int64_t> bound,
                                            int64_t coefficient) {
    if (!sum || !bound) return std::nullopt;
    const __int128 total = *sum + static_cast<__int128>(*bound) * coefficient;
    if (total < -kMaxIndex || total > kMaxIndex) return std::nullopt;
    return total;
  }

  IndexRange RangeOf(const Expr& expr, int effort) { return Range(ToLinear(expr), std::max(effort - 1, 0)); }

  IndexRange RangeOfAtom(const Expr& atom, int effort) {
    switch (atom->op) {
      case Op::kVar: return {0, std::max<int64_t>(atom->var->extent - 1, 0)};
      case Op::kCast: return RangeOfType(atom->args[0]->dtype);
      case Op::kFloorDiv: {
        IndexRange range = RangeOf(atom->args[0], effort);
        const int64_t divisor = atom->args[1]->value.i;
        if (range.lower) range.lower = FloorDivInt(*range.lower, divisor);
        if (range.upper) range.upper = FloorDivInt(*range.upper, divisor);
        return range;
      }
      case Op::kMod: {
        const IndexRange range = RangeOf(atom->args[0], effort);
        const int64_t divisor = atom->args[1]->value.i;
        if (range.lower && range.upper && *range.lower >= 0 && *range.upper < divisor) return range;
        return {0, divisor - 1};
      }
      case Op::kMin:
      case Op::kMax: {
        const IndexRange a = RangeOf(atom->args[0], effort), b = RangeOf(atom->args[1], effort);
        // min(a, b) is at most both upper bounds, and at least the smaller lower bound if both are known; max
        // is symmetric.
        if (atom->op == Op::kMax)
          return {Larger(a.lower, b.lower), BothOr(a.upper, b.upper, /*larger=*/true)};
        return {BothOr(a.lower, b.lower, /*larger=*/false),
                a.upper && b.upper ? std::min(a.upper, b.upper) : Larger(a.upper, b.upper)};
      }
      default: return {};
    }
  }

  static std::optional<int64_t> BothOr(std::optional<int64_t> a, std::optional<int64_t> b, bool larger) {
    if (!a || !b) return std::nullopt;
    return larger ? std::max(*a, *b) : std::min(*a, *b);
  }

  static IndexRange RangeOfType(DType dtype) {
    switch (dtype) {
      case DType::kI32: return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
      case DType::kI8: return {-128, 127};
      case DType::kU8: return {0, 255};
      case DType::kI16: return {-32768, 32767};
      case DType::kU16: return {0, 65535};
      case DType::kU32: return {0, std::numeric_limits<uint32_t>::max()};
      case DType::kU64: return {};
      default: return {0, 1};
    }
  }

  const Facts& facts_;
  int steps_ = 0;
};

// The cases of a comparison of two affine expressions: a != b is a < b or b < a.
FactCases CasesOfComparison(const Expr& comparison, bool holds) {
  const Expr &a = comparison->args[0], &b = comparison->args[1];
  if (!IsAffineOfAxes(a) || !IsAffineOfAxes(b)) return {{}};
  Facts facts = FactsOf(comparison, holds);
  if (!facts.empty()) return {facts};
  return {FactsOf(MakeBinary(Op::kLt, a, b), true), FactsOf(MakeBinary(Op::kLt, b, a), true)};
}

FactCases Conjunction(const FactCases& a, const FactCases& b) {
  if (a.size() * b.size() > kMaxCases) return a;
  FactCases product;
  for (const Facts& left : a) {
    for (const Facts& right : b) {
      Facts facts = left;
      for (const Linear& fact : right) {
        if (facts.size() < kMaxFacts) facts.push_back(fact);
      }
      product.push_back(std::move(facts));
    }
  }
  return product;
}

FactCases CasesOf(const Expr& condition, bool holds) {
  switch (condition->op) {
    case Op::kConst: return (condition->value.i != 0) == holds ? FactCases{{}} : FactCases{};
    case Op::kNot: return CasesOf(condition->args[0], !holds);
    case Op::kLt:
    case Op::kLe:
    case Op::kEq:
    case Op::kNe: return CasesOfComparison(condition, holds);
    case Op::kAnd:
    case Op::kOr: {
      const FactCases a = CasesOf(condition->args[0], holds), b = CasesOf(condition->args[1], holds);
      if ((condition->op == Op::kAnd) == holds) return Conjunction(a, b);
      if (a.size() + b.size() > kMaxCases) return {{}};
      FactCases either = a;
      either.insert(either.end(), b.begin(), b.end());
      return either;
    }
    default: return {{}};
  }
}

}  // namespace

FactCases Assume(const Expr& condition, bool holds, const FactCases& known) {
  FactCases cases = Conjunction(known, CasesOf(condition, holds));
  std::erase_if(cases, IsContradictory);
  return cases;
}

bool IsContradictory(const Facts& facts) {
  return std::any_of(facts.begin(), facts.end(), [&](const Linear& fact) {
    const auto upper = BoundFinder(facts).Range(fact, 1).upper;
    return upper && *upper < 0;
  });
}

IndexRange RangeUnder(const Linear& linear, const Facts& facts) {
  return BoundFinder(facts).Range(linear, kEffort);
}

}  // namespace mycc
