#include "codegen/workload/facts.h"

#include <algorithm>

#include "codegen/workload/index.h"
#include "codegen/workload/limits.h"

namespace mycc {
namespace {

static_assert(kMaxIndex <= kMaxBound);

// Cases beyond these are dropped: bounds get weaker, never wrong.
constexpr size_t kMaxCases = 16;
constexpr size_t kMaxFacts = 16;

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

}  // namespace mycc
