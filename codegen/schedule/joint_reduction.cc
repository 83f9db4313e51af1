#include "codegen/schedule/joint_reduction.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

#include "base/status.h"
#include "codegen/expr/print.h"
#include "codegen/schedule/correction.h"

namespace mycc {
namespace {

// Whether two constants are one number in the type, up to the roundings of how each was computed.
bool AreEqual(double a, double b, DType dtype) {
  const double epsilon =
      dtype == DType::kF64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  return std::fabs(a - b) <= 2 * epsilon * std::fabs(b);
}

bool IsNumber(const Expr& e, double value) {
  return e->op == Op::kConst && IsFloat(e->dtype) && AreEqual(e->value.f, value, e->dtype);
}

// value == factor * rest, where the factor may be negative.
PositiveFactor SignedFactorOf(const Expr& value) {
  const PositiveFactor positive = PositiveFactorOf(value);
  if (positive.rest->op != Op::kNeg) return positive;
  const PositiveFactor inner = SignedFactorOf(positive.rest->args[0]);
  return {-positive.factor * inner.factor, inner.rest};
}

// (sum of exponentials, extremum), merged with exp(-scale * |difference|).
Reduction ExponentialSums(bool is_max, double scale, DType dtype) {
  const TupleParams p({{"sum", dtype}, {is_max ? "max" : "min", dtype}});
  const Expr &sum = p.a[0], &best = p.a[1], &other_sum = p.b[0], &other_best = p.b[1];
  const Expr distance = MakeUnary(Op::kAbs, best - other_best);
  const Expr power = MakeUnary(Op::kExp2, distance * FloatConst(-scale * std::numbers::log2e, dtype));
  // Equal ones may be infinite, which have no difference.
  const Expr shrinks = MakeSelect(MakeBinary(Op::kEq, best, other_best), FloatConst(1, dtype), power);
  const Expr better = is_max ? MakeBinary(Op::kLt, best, other_best) : MakeBinary(Op::kLt, other_best, best);
  const Expr merged = MakeSelect(better, other_sum, sum) + MakeSelect(better, sum, other_sum) * shrinks;
  const ReduceOp extremum = is_max ? ReduceOp::kMax : ReduceOp::kMin;
  return p.Function(is_max ? "sum_exp_max" : "sum_exp_min",
                    {FloatConst(0, dtype), ReduceIdentity(extremum, dtype)},
                    {merged, ReduceCombine(extremum, best, other_best)});
}

// (squared deviations, sum, count).
Reduction Moments(DType dtype) {
  const TupleParams p({{"squares", dtype}, {"sum", dtype}, {"count", dtype}});
  const Expr zero = FloatConst(0, dtype), count = p.a[2] + p.b[2], pairs = p.a[2] * p.b[2];
  const Expr difference = p.b[1] * p.a[2] - p.a[1] * p.b[2];
  const Expr weight = MakeSelect(MakeBinary(Op::kEq, pairs, zero), zero,
                                 MakeBinary(Op::kDiv, FloatConst(1, dtype), pairs * count));
  // The weight is applied to one factor first: the square alone may overflow.
  return p.Function("moments", {zero, zero, zero},
                    {p.a[0] + p.b[0] + difference * (difference * weight), p.a[1] + p.b[1], count});
}

class Joining {
 public:
  Joining(const Reduction& first, const Buffer& result, const Expr& f, const Expr& value, int64_t terms)
      : first_(first), result_(result), f_(f), value_(value), terms_(terms) {}

  absl::StatusOr<JointReduction> Join() const {
    const DType dtype = result_->dtype;
    if (dtype != DType::kF32 && dtype != DType::kF64)
      return Refuse(result_->name, " is ", DTypeName(dtype), "; expected f32 or f64");
    if (value_->dtype != dtype) {
      return Refuse("one is ", DTypeName(dtype), " and the other ", DTypeName(value_->dtype),
                    "; expected one type");
    }
    if (value_->op == Op::kExp) return JoinExponentials();
    if (value_->op == Op::kMul && StructurallyEqual(value_->args[0], value_->args[1]))
      return JoinDeviations(value_->args[0]);
    if (value_->op == Op::kPow && IsNumber(value_->args[1], 2)) return JoinDeviations(value_->args[0]);
    return Refuse("there is no known fact about sums of ", PrintExpr(value_));
  }

 private:
  template <typename... Parts>
  absl::Status Refuse(const Parts&... why) const {
    return Refusal(why..., "; expected sums of exp(x - m) with m = max x, or of (x - t/n)^2 with t = sum x");
  }

  absl::StatusOr<JointReduction> JoinExponentials() const {
    MYCC_ASSIGN_OR_RETURN(const Dependence dependence, DependenceOn(value_, result_, LoadFacts()));
    if (dependence.exponent == 0 || dependence.factor != nullptr)
      return Refuse(PrintExpr(value_), " does not depend on ", result_->name, " by its exponent");
    const bool is_max = dependence.exponent < 0;
    if (!(first_ == (is_max ? ReduceOp::kMax : ReduceOp::kMin)))
      return Refuse(result_->name, " is ", is_max ? "no maximum" : "no minimum");
    const double scale = std::fabs(dependence.exponent);
    if (!IsScaledValue(value_->args[0], is_max ? scale : -scale)) {
      return Refuse("the exponent ", PrintExpr(value_->args[0]), " is not that of ", PrintExpr(f_),
                    ", which ", result_->name, " is made of");
    }
    // The exponential of f - f: 1, and NaN where the definition has that of inf - inf. The other infinity is
    // left to the merge, which knows whether all terms have it.
    const Expr zero = FloatConst(0, value_->dtype);
    const Expr clipped = MakeBinary(is_max ? Op::kMax : Op::kMin, f_, zero);
    Expr one = FloatConst(1, value_->dtype) + (clipped - clipped);
    if (IsGuarded(/*at_identity=*/false)) {
      return Refuse("a number stands for ", result_->name, " at the infinity that is no identity of ",
                    first_.name());
    }
    // Terms at infinity add nothing if a guard replaces an infinite extremum by a number.
    if (IsGuarded(/*at_identity=*/true)) {
      const Expr infinity = first_.Identity(0, value_->dtype);
      one = MakeSelect(MakeBinary(Op::kEq, f_, infinity), zero, one);
    }
    return JointReduction{ExponentialSums(is_max, scale, value_->dtype), {one, f_}};
  }

  // Whether the exponent is scale * (f - R).
  bool IsScaledValue(const Expr& exponent, double scale) const {
    const SplitExponent split = SplitOf(exponent, result_);
    if (split.rest == nullptr) return false;
    const PositiveFactor of_rest = SignedFactorOf(split.rest), of_f = SignedFactorOf(f_);
    return StructurallyEqual(of_rest.rest, of_f.rest) &&
           AreEqual(scale * of_f.factor, of_rest.factor, f_->dtype);
  }

  // Whether a number stands for the result at the infinity that is its identity, or at the other one.
  bool IsGuarded(bool at_identity) const {
    bool found = false;
    const double identity = first_.Identity(0, value_->dtype)->value.f;
    Rewrite(value_, [&](const Expr& e) -> Expr {
      const std::optional<GuardedResult> guard = GuardedResultOf(e);
      found |= guard && guard->result->buffer == result_ && (guard->infinity == identity) == at_identity;
      return nullptr;
    });
    return found;
  }

  absl::StatusOr<JointReduction> JoinDeviations(const Expr& deviation) const {
    if (!(first_ == ReduceOp::kSum)) return Refuse(result_->name, " is no sum");
    if (deviation->op != Op::kSub) return Refuse(PrintExpr(deviation), " is no difference from a mean");
    const bool first_is_mean = IsMean(deviation->args[0]);
    const Expr& mean = deviation->args[first_is_mean ? 0 : 1];
    const Expr& term = deviation->args[first_is_mean ? 1 : 0];
    if (!IsMean(mean)) return Refuse(PrintExpr(mean), " is not ", result_->name, " / ", terms_, ", the mean");
    if (!StructurallyEqual(term, f_)) {
      return Refuse(PrintExpr(term), " is not ", PrintExpr(f_), ", which ", result_->name, " is the sum of");
    }
    const int64_t exact = int64_t{1} << (value_->dtype == DType::kF32 ? 24 : 53);
    if (terms_ > exact) {
      return Refuse("a count up to ", terms_, " does not fit ", DTypeName(value_->dtype));
    }
    // A term's deviation from itself: 0, and NaN for infinities, as the definition has it.
    return JointReduction{Moments(value_->dtype), {f_ - f_, f_, FloatConst(1, value_->dtype)}};
  }

  // t / n or t * (1 / n).
  bool IsMean(const Expr& e) const {
    const double n = static_cast<double>(terms_);
    if (e->op == Op::kDiv) return IsLoadOf(e->args[0], result_) && IsNumber(e->args[1], n);
    if (e->op != Op::kMul) return false;
    return (IsLoadOf(e->args[0], result_) && IsNumber(e->args[1], 1 / n)) ||
           (IsLoadOf(e->args[1], result_) && IsNumber(e->args[0], 1 / n));
  }

  const Reduction& first_;
  const Buffer& result_;
  const Expr& f_;
  const Expr& value_;
  const int64_t terms_;
};

}  // namespace

absl::StatusOr<JointReduction> JoinReductions(const Reduction& first, const Buffer& result, const Expr& f,
                                              const Expr& value, int64_t terms) {
  return Joining(first, result, f, value, terms).Join();
}

}  // namespace mycc
