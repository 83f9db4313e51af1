// Expressions are simplified through their linear form: a constant and terms with coefficients, whose atoms
// are variables, quotients and remainders.
#include "codegen/expr/affine.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "codegen/expr/integers.h"
#include "codegen/expr/range.h"

namespace mycc {
namespace {

void AddTerm(Linear* linear, const Expr& atom, int64_t coefficient) {
  if (coefficient == 0) return;
  auto& terms = linear->terms;
  for (auto it = terms.begin(); it != terms.end(); ++it) {
    if (!StructurallyEqual(it->first, atom)) continue;
    it->second = WrapAdd(it->second, coefficient);
    if (it->second == 0) terms.erase(it);
    return;
  }
  terms.emplace_back(atom, coefficient);
}

// linear == divisor * quotient + remainder, taking every multiple of the divisor out of the terms. The
// constant goes with the remainder so that the remainder stays in [0, divisor) where that is possible.
void SplitByDivisor(const Linear& linear, int64_t divisor, Linear* quotient, Linear* remainder) {
  for (const auto& [atom, coefficient] : linear.terms) {
    const int64_t q = coefficient / divisor;
    AddTerm(quotient, atom, q);
    AddTerm(remainder, atom, coefficient - q * divisor);
  }
  const int64_t q = FloorDivInt(linear.constant, divisor);
  quotient->constant += q;
  remainder->constant += linear.constant - q * divisor;
}

// linear == scale * coarse + fine with 0 <= fine < scale, scale a divisor of `divisor` greater than 1: then
//   linear // divisor == coarse // (divisor / scale)
//   linear % divisor == scale * (coarse % (divisor / scale)) + fine
struct Coarsened {
  int64_t scale;
  Linear coarse, fine;
};

std::optional<Coarsened> Coarsen(const Linear& linear, int64_t divisor) {
  for (const auto& candidate : linear.terms) {
    const int64_t scale = std::gcd(divisor, candidate.second);
    if (scale <= 1) continue;
    Coarsened result{scale, {}, {}};
    for (const auto& [atom, coefficient] : linear.terms) {
      if (coefficient % scale == 0) {
        result.coarse.terms.emplace_back(atom, coefficient / scale);
      } else {
        result.fine.terms.emplace_back(atom, coefficient);
      }
    }
    result.coarse.constant = FloorDivInt(linear.constant, scale);
    result.fine.constant = linear.constant - result.coarse.constant * scale;
    const auto range = RangeOfLinear(result.fine);
    if (range && range->min >= 0 && range->max < scale) return result;
  }
  return std::nullopt;
}

Expr DivideLinear(const Linear& linear, int64_t divisor) {
  Linear quotient, remainder;
  SplitByDivisor(linear, divisor, &quotient, &remainder);
  const auto range = RangeOfLinear(remainder);
  if (range && FloorDivInt(range->min, divisor) == FloorDivInt(range->max, divisor)) {
    quotient.constant += FloorDivInt(range->min, divisor);
    return FromLinear(quotient);
  }
  if (const auto coarsened = Coarsen(remainder, divisor)) {
    AddScaled(&quotient, ToLinear(DivideLinear(coarsened->coarse, divisor / coarsened->scale)), 1);
    return FromLinear(quotient);
  }
  // Nested divisions by constants: (x / a) / b == x / (a * b).
  if (remainder.terms.size() == 1 && remainder.terms[0].second == 1 && remainder.constant == 0) {
    const Expr& atom = remainder.terms[0].first;
    int64_t inner = 0;
    if (atom->op == Op::kFloorDiv && IsConstInt(atom->args[1], &inner) && inner > 0) {
      AddScaled(&quotient, ToLinear(DivideLinear(ToLinear(atom->args[0]), inner * divisor)), 1);
      return FromLinear(quotient);
    }
  }
  AddTerm(&quotient, FloorDiv(FromLinear(remainder), divisor), 1);
  return FromLinear(quotient);
}

Expr ModLinear(const Linear& linear, int64_t divisor) {
  Linear quotient, remainder;
  SplitByDivisor(linear, divisor, &quotient, &remainder);
  const auto range = RangeOfLinear(remainder);
  if (range && FloorDivInt(range->min, divisor) == FloorDivInt(range->max, divisor)) {
    remainder.constant -= FloorDivInt(range->min, divisor) * divisor;
    return FromLinear(remainder);
  }
  if (const auto coarsened = Coarsen(remainder, divisor)) {
    Linear sum = coarsened->fine;
    AddScaled(&sum, ToLinear(ModLinear(coarsened->coarse, divisor / coarsened->scale)), coarsened->scale);
    return FromLinear(sum);
  }
  return Mod(FromLinear(remainder), divisor);
}

// f//J * J + f%J == f, for every pair of terms of that shape.
void JoinQuotientAndRemainder(Linear* linear) {
  for (size_t i = 0; i < linear->terms.size(); ++i) {
    const auto [mod, coefficient] = linear->terms[i];
    int64_t divisor = 0;
    if (mod->op != Op::kMod || !IsConstInt(mod->args[1], &divisor) || divisor <= 0) continue;
    const Expr quotient = DivideLinear(ToLinear(mod->args[0]), divisor);
    for (size_t j = 0; j < linear->terms.size(); ++j) {
      if (linear->terms[j].second != coefficient * divisor ||
          !StructurallyEqual(linear->terms[j].first, quotient))
        continue;
      const Expr whole = mod->args[0];
      const int64_t scale = coefficient;
      linear->terms.erase(linear->terms.begin() + std::max(i, j));
      linear->terms.erase(linear->terms.begin() + std::min(i, j));
      AddScaled(linear, ToLinear(whole), scale);
      JoinQuotientAndRemainder(linear);
      return;
    }
  }
}

Linear AtomOf(const Expr& expr) {
  Linear atom;
  atom.terms.emplace_back(expr, 1);
  return atom;
}

// Decides a comparison of index expressions by ranges; nullptr when both outcomes remain possible.
Expr DecideComparison(Op op, const Expr& a, const Expr& b) {
  Linear difference = ToLinear(b);  // b - a
  AddScaled(&difference, ToLinear(a), -1);
  const auto range = RangeOfLinear(difference);
  if (!range) return nullptr;
  const bool is_zero = range->min == 0 && range->max == 0, is_not_zero = range->min > 0 || range->max < 0;
  const auto decide = [](bool holds, bool fails) { return holds || fails ? BoolConst(holds) : nullptr; };
  switch (op) {
    case Op::kLt: return decide(range->min > 0, range->max <= 0);
    case Op::kLe: return decide(range->min >= 0, range->max < 0);
    case Op::kEq: return decide(is_zero, is_not_zero);
    case Op::kNe: return decide(is_not_zero, is_zero);
    default: return nullptr;
  }
}

// b where `by`, which says how far it is beyond a, is never negative; a where it is never positive.
Expr Extreme(Op op, const Expr& a, const Expr& b, const Expr& by) {
  const std::optional<Interval> range = RangeOf(Simplify(by));
  if (range && range->min >= 0) return b;
  return range && range->max <= 0 ? a : Simplify(MakeBinary(op, a, b));
}

bool IsIndex(const Expr& expr) { return expr->dtype == DType::kI64; }

// An integer that is compared, as an index: i32(j) is j where it has room. Null for other types.
Expr AsIndex(const Expr& number) {
  if (IsIndex(number)) return number;
  if (number->dtype != DType::kI32) return nullptr;
  if (number->op == Op::kConst) return IntConst(number->value.i);
  if (number->op == Op::kCast && IsIndex(number->args[0])) {
    const auto [lowest, highest] = RangeOfInt(DType::kI32);
    const std::optional<Interval> range = RangeOf(number->args[0]);
    if (range && range->min >= lowest && range->max <= highest) return number->args[0];
  }
  return MakeCast(DType::kI64, number);
}

Expr SimplifyNode(const Expr& expr) {
  switch (expr->op) {
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kFloorDiv:
    case Op::kMod:
    case Op::kNeg:
      if (IsIndex(expr)) return FromLinear(ToLinear(expr));
      return nullptr;
    case Op::kLt:
    case Op::kLe:
    case Op::kEq:
    case Op::kNe:
      return IsIndex(expr->args[0]) ? DecideComparison(expr->op, expr->args[0], expr->args[1]) : nullptr;
    case Op::kMin:
    case Op::kMax: {
      if (!IsIndex(expr)) return nullptr;
      const Expr less = DecideComparison(Op::kLe, expr->args[0], expr->args[1]);
      if (!less) return nullptr;
      return IsConstInt(less, 1) == (expr->op == Op::kMin) ? expr->args[0] : expr->args[1];
    }
    default: return nullptr;
  }
}

}  // namespace

int64_t Linear::CoefficientOf(const VarNode* var) const {
  for (const auto& [atom, coefficient] : terms) {
    if (atom->op == Op::kVar && atom->var.get() == var) return coefficient;
  }
  return 0;
}

void AddScaled(Linear* to, const Linear& from, int64_t factor) {
  to->constant = WrapAdd(to->constant, WrapMul(from.constant, factor));
  for (const auto& [atom, coefficient] : from.terms) AddTerm(to, atom, WrapMul(coefficient, factor));
}

Linear ToLinear(const Expr& expr) {
  Linear linear;
  int64_t factor = 0;
  switch (expr->op) {
    case Op::kConst: linear.constant = expr->value.i; return linear;
    case Op::kAdd:
    case Op::kSub:
      linear = ToLinear(expr->args[0]);
      AddScaled(&linear, ToLinear(expr->args[1]), expr->op == Op::kAdd ? 1 : -1);
      JoinQuotientAndRemainder(&linear);
      return linear;
    case Op::kNeg: AddScaled(&linear, ToLinear(expr->args[0]), -1); return linear;
    case Op::kMul: {
      const Linear a = ToLinear(expr->args[0]), b = ToLinear(expr->args[1]);
      if (!a.terms.empty() && !b.terms.empty()) return AtomOf(expr);
      AddScaled(&linear, a.terms.empty() ? b : a, a.terms.empty() ? a.constant : b.constant);
      return linear;
    }
    case Op::kFloorDiv:
    case Op::kMod: {
      if (!IsConstInt(expr->args[1], &factor) || factor <= 0) return AtomOf(expr);
      const Linear inner = ToLinear(expr->args[0]);
      const Expr result = expr->op == Op::kFloorDiv ? DivideLinear(inner, factor) : ModLinear(inner, factor);
      if (result->op == expr->op) return AtomOf(result);
      return ToLinear(result);
    }
    default: return AtomOf(expr);
  }
}

Expr FromLinear(const Linear& linear) {
  Expr sum;
  for (const auto& [atom, coefficient] : linear.terms) {
    if (!sum) {
      sum = coefficient == 1 ? atom : atom * coefficient;
    } else if (coefficient < 0) {
      sum = sum - (coefficient == -1 ? atom : atom * -coefficient);
    } else {
      sum = sum + (coefficient == 1 ? atom : atom * coefficient);
    }
  }
  if (!sum) return IntConst(linear.constant);
  if (linear.constant < 0) return sum - (-linear.constant);
  return linear.constant == 0 ? sum : sum + linear.constant;
}

Expr Simplify(const Expr& expr) { return Rewrite(expr, SimplifyNode); }

std::vector<Expr> SimplifiedAt(const std::vector<Expr>& exprs, const VarMap& values) {
  std::vector<Expr> simplified;
  simplified.reserve(exprs.size());
  for (const Expr& expr : exprs) simplified.push_back(Simplify(Substitute(expr, values)));
  return simplified;
}

Expr LargerOf(const Expr& a, const Expr& b) { return Extreme(Op::kMax, a, b, b - a); }
Expr SmallerOf(const Expr& a, const Expr& b) { return Extreme(Op::kMin, a, b, a - b); }

int64_t DivisorOf(const Expr& expr) {
  const auto of = [&](int arg) { return DivisorOf(expr->args[arg]); };
  int64_t divisor = 0;
  switch (expr->op) {
    case Op::kConst: return std::abs(expr->value.i);
    case Op::kNeg: return of(0);
    case Op::kMul: return of(0) * of(1);
    case Op::kAdd:
    case Op::kSub:
    case Op::kMin:
    case Op::kMax:
    case Op::kMod: return std::gcd(of(0), of(1));
    case Op::kSelect: return std::gcd(of(1), of(2));
    case Op::kFloorDiv:
      return IsConstInt(expr->args[1], &divisor) && divisor > 0 && of(0) % divisor == 0 ? of(0) / divisor : 1;
    default: return 1;
  }
}

Expr MarginOf(const Expr& comparison) {
  if (comparison->op != Op::kLt && comparison->op != Op::kLe) return nullptr;
  const Expr a = AsIndex(comparison->args[0]), b = AsIndex(comparison->args[1]);
  return a != nullptr ? b - a - (comparison->op == Op::kLt ? 1 : 0) : nullptr;
}

Expr WithinSums(const Expr& atom) {
  const auto may_be_any = [](const ExprNode& e) { return e.op == Op::kLoad && e.dtype == DType::kI64; };
  if (!AnyExpr(atom, may_be_any) || RangeOf(atom)) return atom;
  constexpr int64_t kMost = int64_t{1} << 61;
  return MakeBinary(Op::kMin, IntConst(kMost), MakeBinary(Op::kMax, IntConst(-kMost), atom));
}

Linear Negated(Linear linear) {
  linear.constant = -linear.constant;
  for (auto& term : linear.terms) term.second = -term.second;
  return linear;
}

std::vector<Linear> FactsOf(const Expr& comparison, bool holds) {
  const Op op = comparison->op;
  if (!IsComparison(op) || !IsIndex(comparison->args[0])) return {};
  Linear above = ToLinear(comparison->args[1] - comparison->args[0]), below = Negated(above);
  if (op == Op::kEq || op == Op::kNe)
    return (op == Op::kEq) == holds ? std::vector<Linear>{above, below} : std::vector<Linear>{};
  Linear& fact = holds ? above : below;
  fact.constant -= (op == Op::kLt) == holds ? 1 : 0;
  return {fact};
}

Expr Within(const Expr& index, int64_t extent) {
  return MakeBinary(Op::kAnd, Simplify(MakeBinary(Op::kLe, IntConst(0), index)),
                    Simplify(MakeBinary(Op::kLt, index, IntConst(extent))));
}

bool IsInside(const BufferNode& buffer, const std::vector<Expr>& indices) {
  for (size_t d = 0; d < indices.size(); ++d) {
    const std::optional<Interval> range = RangeOf(indices[d]);
    if (!range || range->min < 0 || range->max >= buffer.shape[d]) return false;
  }
  return true;
}

Expr OffsetOf(const Layout& layout, const std::vector<Expr>& indices) {
  Expr offset = IntConst(0);
  for (size_t d = 0; d < layout.dims.size(); ++d) {
    const std::vector<Mode>& modes = layout.dims[d];
    for (size_t m = 0; m < modes.size(); ++m) {
      int64_t below = 1;  // values of the faster digits
      for (size_t faster = m + 1; faster < modes.size(); ++faster) below *= modes[faster].extent;
      Expr digit = m == 0 ? indices[d] : Mod(indices[d], below * modes[m].extent);
      if (m + 1 < modes.size()) digit = FloorDiv(digit, below);
      offset = offset + digit * modes[m].stride;
    }
  }
  return offset;
}

Expr FlatIndex(const BufferNode& buffer, const std::vector<Expr>& indices) {
  return OffsetOf(Layout::RowMajor(buffer.shape), indices);
}

int64_t AlignedLanes(const BufferNode& buffer, const std::vector<Expr>& indices, const VarNode& lane) {
  constexpr int64_t kMostLanes = 64;
  const Linear offset = ToLinear(OffsetOf(buffer.layout, indices));
  if (offset.CoefficientOf(&lane) != 1) return 0;
  int64_t divisor = std::gcd(offset.constant, kMostLanes);
  for (const auto& [atom, coefficient] : offset.terms) {
    if (atom->op == Op::kVar && atom->var.get() == &lane) continue;
    if (UsesVar(atom, &lane) || HasLoad(atom)) return 0;
    divisor = std::gcd(divisor, coefficient * DivisorOf(atom));
  }
  return divisor;
}

std::optional<LinearInVar> SplitLinear(const Expr& expr, const VarNode* var) {
  Linear linear = ToLinear(expr);
  const int64_t coefficient = linear.CoefficientOf(var);
  std::erase_if(linear.terms,
                [&](const auto& term) { return term.first->op == Op::kVar && term.first->var.get() == var; });
  for (const auto& [atom, of_atom] : linear.terms) {
    if (UsesVar(atom, var)) return std::nullopt;
  }
  return LinearInVar{coefficient, FromLinear(linear)};
}

std::optional<int64_t> StrideOf(const Expr& flat, const VarNode* var) {
  const std::optional<LinearInVar> linear = SplitLinear(flat, var);
  return linear ? std::optional<int64_t>(linear->coefficient) : std::nullopt;
}

HalfLine WhereAtLeastZero(const LinearInVar& linear) {
  const int64_t step = linear.coefficient;
  if (step < 0) return {nullptr, FloorDiv(linear.rest, -step) + 1};
  return {FloorDiv(IntConst(step - 1) - linear.rest, step), nullptr};
}

std::optional<FreeAndRange> SplitByVars(const Linear& linear, const VarSet& vars) {
  FreeAndRange split{{linear.constant, {}}, {0, 0}};
  Linear rest;
  for (const auto& term : linear.terms)
    (UsesAnyOf(term.first, vars) ? rest : split.free).terms.push_back(term);
  const std::optional<Interval> range = RangeOfLinear(rest);
  if (!range) return std::nullopt;
  split.range = *range;
  return split;
}

}  // namespace mycc
