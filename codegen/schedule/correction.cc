#include "codegen/schedule/correction.h"

#include <cfloat>
#include <cmath>
#include <utility>

#include "base/status.h"
#include "codegen/expr/print.h"

namespace mycc {
namespace {

class Analysis {
 public:
  Analysis(const Buffer& result, const LoadFacts& loads) : result_(result), loads_(loads) {}

  absl::StatusOr<Dependence> Of(const Expr& value) const {
    switch (value->op) {
      case Op::kLoad:
        if (value->buffer == result_) return Dependence{nullptr, value, 0, value};
        return loads_.dependence(value);
      case Op::kMul:
      case Op::kDiv: return OfProduct(value);
      case Op::kAdd:
      case Op::kSub: return OfSum(value, value->args[0], value->args[1]);
      case Op::kSelect: return OfSelect(value);
      case Op::kNeg:
      case Op::kCast: return OfUnary(value);
      case Op::kExp: return OfExponential(value);
      default: return OfOther(value);
    }
  }

 private:
  template <typename... Parts>
  absl::Status Refuse(const Expr& value, const Parts&... why) const {
    const std::string& r = result_->name;
    return Refusal(PrintExpr(value), " depends on ", r, ", and ", why...,
                   "; expected a product with a factor that is free of the streamed axis, or exp(x - ", r,
                   "), also with select(", r, " == -inf, 0.0, ", r, ") in its place");
  }

  absl::StatusOr<Dependence> OfOther(const Expr& value) const {
    for (const Expr& arg : value->args) {
      MYCC_ASSIGN_OR_RETURN(const Dependence inner, Of(arg));
      if (!inner.IsFree()) return Refuse(value, OpName(value->op), " has no known correction");
    }
    return Dependence{value};
  }

  // `rest` is null for 1.
  static bool IsOne(const Expr& expr) {
    return expr == nullptr || (expr->op == Op::kConst && expr->value.f == 1);
  }
  static Expr Times(const Expr& a, const Expr& b) {
    return IsOne(a) ? b : IsOne(b) ? a : MakeBinary(Op::kMul, a, b);
  }
  static Expr Over(const Expr& a, const Expr& b, DType dtype) {
    if (IsOne(b)) return a;
    return MakeBinary(Op::kDiv, a == nullptr ? FloatConst(1, dtype) : a, b);
  }

  absl::StatusOr<Dependence> OfProduct(const Expr& value) const {
    MYCC_ASSIGN_OR_RETURN(const Dependence a, Of(value->args[0]));
    MYCC_ASSIGN_OR_RETURN(const Dependence b, Of(value->args[1]));
    if (a.IsFree() && b.IsFree()) return Dependence{value};
    const bool is_quotient = value->op == Op::kDiv;
    Dependence whole;
    whole.result = a.IsFree() ? b.result : a.result;
    whole.rest = is_quotient ? Over(a.rest, b.rest, value->dtype) : Times(a.rest, b.rest);
    whole.factor = is_quotient ? Over(a.factor, b.factor, value->dtype) : Times(a.factor, b.factor);
    whole.exponent = a.exponent + (is_quotient ? -b.exponent : b.exponent);
    return whole;
  }

  // Both terms must depend on R alike.
  absl::StatusOr<Dependence> OfSum(const Expr& value, const Expr& left, const Expr& right) const {
    MYCC_ASSIGN_OR_RETURN(Dependence a, Of(left));
    MYCC_ASSIGN_OR_RETURN(Dependence b, Of(right));
    if (a.IsFree() && b.IsFree()) return Dependence{value};
    if (IsZero(left)) a = {left, b.factor, b.exponent, b.result};
    if (IsZero(right)) b = {right, a.factor, a.exponent, a.result};
    const bool same_factor = a.factor == b.factor || (a.factor != nullptr && b.factor != nullptr &&
                                                      StructurallyEqual(a.factor, b.factor));
    if (!same_factor || a.exponent != b.exponent || a.rest == nullptr || b.rest == nullptr)
      return Refuse(value, "its parts depend on it differently");
    std::vector<Expr> args = value->args;
    args[args.size() - 2] = a.rest;
    args[args.size() - 1] = b.rest;
    return Dependence{WithArgs(value, std::move(args)), a.factor, a.exponent, a.result};
  }

  absl::StatusOr<Dependence> OfSelect(const Expr& value) const {
    MYCC_ASSIGN_OR_RETURN(const Dependence condition, Of(value->args[0]));
    if (!condition.IsFree()) return Refuse(value, "it decides a condition");
    return OfSum(value, value->args[1], value->args[2]);
  }

  absl::StatusOr<Dependence> OfUnary(const Expr& value) const {
    MYCC_ASSIGN_OR_RETURN(Dependence inner, Of(value->args[0]));
    if (inner.IsFree()) return Dependence{value};
    if (!IsFloat(value->dtype)) return Refuse(value, "it is converted to an integer");
    if (inner.rest == nullptr) return Refuse(value, "it stands alone");
    if (inner.factor != nullptr && value->op == Op::kCast && LosesRange(value->dtype) &&
        !IsAtMostOne(inner.rest)) {
      return Refuse(value, "without its factor the value may not fit ", DTypeName(value->dtype));
    }
    inner.rest = WithArgs(value, {inner.rest});
    return inner;
  }

  // Types whose largest numbers are far below those of f32.
  static bool LosesRange(DType dtype) { return DTypeBytes(dtype) == 1 || dtype == DType::kF16; }
  // exp of a difference: the numerator of a softmax, at most 1.
  bool IsAtMostOne(const Expr& value) const {
    const Expr known = value->op == Op::kLoad ? loads_.definition(value) : value;
    return known != nullptr && known->op == Op::kExp && known->args[0]->op == Op::kSub;
  }

  absl::StatusOr<Dependence> OfExponential(const Expr& value) const {
    const SplitExponent split = SplitOf(value->args[0], result_);
    if (split.rest != nullptr) {
      MYCC_ASSIGN_OR_RETURN(const Dependence rest, Of(split.rest));
      if (!rest.IsFree()) return Refuse(split.rest, "the exponent is not linear in it");
    }
    if (split.result == nullptr) return Dependence{value};
    return Dependence{value, nullptr, split.slope, split.result};
  }

  const Buffer& result_;
  const LoadFacts& loads_;
};

bool IsInfinity(const Expr& e) { return e->op == Op::kConst && std::isinf(e->value.f); }
bool IsFiniteNumber(const Expr& e) {
  return e->op == Op::kConst && IsFloat(e->dtype) && std::isfinite(e->value.f);
}

// max(R, lowest) and min(R, highest) differ from R where it is infinite alone.
std::optional<GuardedResult> ClampOf(const Expr& value) {
  for (const int side : {0, 1}) {
    const Expr &load = value->args[side], &bound = value->args[1 - side];
    if (load->op != Op::kLoad || bound->op != Op::kConst) continue;
    if (load->dtype != DType::kF32 && load->dtype != DType::kF64) continue;
    const double sign = value->op == Op::kMax ? -1 : 1;
    const double last = sign * (load->dtype == DType::kF64 ? DBL_MAX : FLT_MAX);
    if (bound->value.f == last) return GuardedResult{load, sign * HUGE_VAL};
  }
  return std::nullopt;
}

// The infinity with which the condition compares `load`, so that it is true where they differ (`differs`), or
// where they are equal.
std::optional<double> InfinityOf(const Expr& condition, const Expr& load, bool differs) {
  for (const int side : {0, 1}) {
    if (condition->args.size() != 2) break;
    const Expr& other = condition->args[1 - side];
    if (!StructurallyEqual(condition->args[side], load) || !IsInfinity(other)) continue;
    if (condition->op == (differs ? Op::kNe : Op::kEq)) return other->value.f;
    // -inf < R, R < inf.
    const bool is_beyond = side == 1 ? other->value.f < 0 : other->value.f > 0;
    if (differs && condition->op == Op::kLt && is_beyond) return other->value.f;
  }
  return std::nullopt;
}

// R, or R where it is finite and a number where it is not: sums of exponentials are empty there. Null for
// others.
Expr ResultIn(const Expr& exponent, const Buffer& result) {
  const std::optional<GuardedResult> guard = GuardedResultOf(exponent);
  const Expr load = guard ? guard->result : exponent;
  return IsLoadOf(load, result) ? load : nullptr;
}

}  // namespace

Dependence Dependence::OfElement(const Expr& load, const VarMap& at) const {
  return {load, factor ? Substitute(factor, at) : nullptr, exponent, Substitute(result, at)};
}

std::optional<GuardedResult> GuardedResultOf(const Expr& value) {
  if (value->op == Op::kMax || value->op == Op::kMin) return ClampOf(value);
  if (value->op != Op::kSelect) return std::nullopt;
  for (const int arm : {1, 2}) {
    const Expr &load = value->args[arm], &number = value->args[3 - arm];
    if (load->op != Op::kLoad || !IsFiniteNumber(number)) continue;
    if (const std::optional<double> infinity = InfinityOf(value->args[0], load, /*differs=*/arm == 1))
      return GuardedResult{load, *infinity};
  }
  return std::nullopt;
}

absl::StatusOr<Dependence> DependenceOn(const Expr& value, const Buffer& result, const LoadFacts& loads) {
  return Analysis(result, loads).Of(value);
}

SplitExponent SplitOf(const Expr& exponent, const Buffer& result) {
  if (const Expr load = ResultIn(exponent, result)) return {1, nullptr, load};
  const auto number = [](const Expr& e) { return e->op == Op::kConst ? e->value.f : 0; };
  const auto scaled = [&](const Expr& inner, double factor) {
    SplitExponent split = SplitOf(inner, result);
    split.slope *= factor;
    if (split.rest != nullptr) split.rest = split.rest * FloatConst(factor, inner->dtype);
    return split;
  };
  switch (exponent->op) {
    case Op::kAdd:
    case Op::kSub: {
      const SplitExponent a = SplitOf(exponent->args[0], result), b = SplitOf(exponent->args[1], result);
      const bool subtracts = exponent->op == Op::kSub;
      SplitExponent sum{a.slope + (subtracts ? -b.slope : b.slope), a.rest, a.result ? a.result : b.result};
      if (b.rest != nullptr && a.rest != nullptr) {
        sum.rest = MakeBinary(exponent->op, a.rest, b.rest);
      } else if (b.rest != nullptr) {
        sum.rest = subtracts ? MakeUnary(Op::kNeg, b.rest) : b.rest;
      }
      return sum;
    }
    case Op::kNeg: return scaled(exponent->args[0], -1);
    case Op::kMul:
      if (number(exponent->args[1]) != 0) return scaled(exponent->args[0], number(exponent->args[1]));
      if (number(exponent->args[0]) != 0) return scaled(exponent->args[1], number(exponent->args[0]));
      return {0, exponent};
    default: return {0, exponent};
  }
}

PositiveFactor PositiveFactorOf(const Expr& value) {
  const auto is_positive = [](const Expr& e) { return IsFiniteNumber(e) && e->value.f > 0; };
  const std::vector<Expr>& args = value->args;
  if (value->op == Op::kMul && (is_positive(args[0]) || is_positive(args[1]))) {
    const int side = is_positive(args[1]) ? 0 : 1;
    const PositiveFactor inner = PositiveFactorOf(args[side]);
    return {inner.factor * args[1 - side]->value.f, inner.rest};
  }
  if (value->op == Op::kDiv && is_positive(args[1])) {
    const PositiveFactor inner = PositiveFactorOf(args[0]);
    return {inner.factor / args[1]->value.f, inner.rest};
  }
  if (value->op == Op::kSelect && IsFloat(value->dtype) && IsInfinity(args[2])) {
    const PositiveFactor inner = PositiveFactorOf(args[1]);
    return {inner.factor, MakeSelect(args[0], inner.rest, args[2])};
  }
  return {1, value};
}

Expr Times(const Expr& value, double factor) {
  return factor == 1 ? value : value * FloatConst(factor, value->dtype);
}

Expr Multiplied(const Expr& value, const Expr& factor) {
  const bool divides =
      factor->op == Op::kDiv && factor->args[0]->op == Op::kConst && factor->args[0]->value.f == 1;
  return divides ? MakeBinary(Op::kDiv, value, factor->args[1]) : MakeBinary(Op::kMul, value, factor);
}

}  // namespace mycc
