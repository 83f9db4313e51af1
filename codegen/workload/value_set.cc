// A set is an interval of numbers, and possibly NaN. Each operation maps intervals to an interval that is
// widened by the operation's permitted error.
#include "codegen/workload/value_set.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "codegen/expr/accuracy.h"
#include "codegen/expr/eval.h"

namespace mycc {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

double Least(double a, double b) { return IsLess(b, a) ? b : a; }
double Most(double a, double b) { return IsLess(a, b) ? b : a; }

// One operation on numbers, exact except for the rounding of double.
double Exact(Op op, double a, double b = 0) {
  const Scalar args[] = {{a, 0}, {b, 0}};
  return EvaluateOp(op, DType::kF64, DType::kF64, args).f;
}

// The permitted results for an exact result `exact`: it is widened by the operation's error, which does not
// change the sign.
double LowestOf(Op op, DType dtype, double exact) {
  if (exact == 0 || std::isinf(exact)) return RoundFloat(dtype, exact);
  constexpr double kOwnRounding = 0.5, kTie = 0x1p-20;
  const double units = AccuracyOf(op, dtype).any() - kOwnRounding;
  if (units == 0 && dtype != DType::kF64) return RoundFloat(dtype, exact);
  const double error = (units + kTie) * UnitInLastPlace(dtype, std::abs(exact));
  const double lowest = RoundFloat(dtype, exact - error);
  return exact > 0 ? Most(lowest, 0.0) : lowest;
}
double HighestOf(Op op, DType dtype, double exact) { return -LowestOf(op, dtype, -exact); }

// For a monotone function.
ValueSet Monotone(Op op, DType dtype, const ValueSet& x, bool falls) {
  ValueSet result;
  result.nan = x.nan;
  if (!x.has_numbers()) return result;
  result.low = LowestOf(op, dtype, Exact(op, falls ? x.high : x.low));
  result.high = HighestOf(op, dtype, Exact(op, falls ? x.low : x.high));
  return result;
}

// Numbers below zero give NaN; -0 does not.
ValueSet WithoutNegatives(const ValueSet& x) {
  ValueSet rest = x;
  if (!x.has_numbers() || x.low >= 0) return rest;
  rest.nan = true;
  rest.low = -0.0;
  if (x.high < 0) rest.low = kInfinite, rest.high = -kInfinite;
  return rest;
}

ValueSet Rsqrt(DType dtype, const ValueSet& square) {
  const ValueSet x = WithoutNegatives(square);
  // A zero of each sign gives an infinity of that sign.
  if (x.has_numbers() && std::signbit(x.low) && !std::signbit(x.high))
    return ValueSet::Floats(-kInfinite, kInfinite, x.nan);
  return Monotone(Op::kRsqrt, dtype, x, /*falls=*/true);
}

ValueSet Within(ValueSet set, double bound) {
  if (!set.has_numbers()) return set;
  set.low = std::max(set.low, -bound), set.high = std::min(set.high, bound);
  return set;
}

// sin and cos. For one number: the value and its stated error. For an interval: widened by the interval's
// length.
ValueSet Periodic(Op op, DType dtype, const ValueSet& x) {
  ValueSet result;
  result.nan = x.nan || std::isinf(x.low) || std::isinf(x.high);
  if (!x.has_numbers() || std::isinf(x.low) || std::isinf(x.high)) {
    const bool finite_too = x.has_numbers() && x.low != x.high;
    return finite_too ? ValueSet::Floats(-1, 1, true) : result;
  }
  const double at_low = Exact(op, x.low), at_high = Exact(op, x.high), apart = x.high - x.low;
  result.low = LowestOf(op, dtype, Least(at_low, at_high));
  result.high = HighestOf(op, dtype, Most(at_low, at_high));
  if (apart > 0) result.low -= apart, result.high += apart;
  return Within(result, 1);
}

ValueSet Absolute(const ValueSet& x) {
  ValueSet result;
  result.nan = x.nan;
  if (!x.has_numbers()) return result;
  const double a = std::abs(x.low), b = std::abs(x.high);
  result.low = std::signbit(x.low) && !std::signbit(x.high) ? 0.0 : std::min(a, b);
  result.high = std::max(a, b);
  return result;
}

ValueSet Negative(const ValueSet& x) { return ValueSet::Floats(-x.high, -x.low, x.nan); }

bool HasInfinity(const ValueSet& x) { return x.has_numbers() && (std::isinf(x.low) || std::isinf(x.high)); }

ValueSet Sum(DType dtype, const ValueSet& a, const ValueSet& b) {
  ValueSet result;
  result.nan = a.nan || b.nan;
  if (!a.has_numbers() || !b.has_numbers()) return result;
  result.nan = result.nan || (a.high == kInfinite && b.low == -kInfinite) ||
               (a.low == -kInfinite && b.high == kInfinite);
  const double low = a.low + b.low, high = a.high + b.high;
  // A bound of inf - inf is NaN: the only number that can remain is an infinity.
  result.low = std::isnan(low) ? kInfinite : LowestOf(Op::kAdd, dtype, low);
  result.high = std::isnan(high) ? -kInfinite : HighestOf(Op::kAdd, dtype, high);
  return result;
}

// The hull of the function's values at the four corners, without NaN.
template <typename Function>
ValueSet Corners(const ValueSet& a, const ValueSet& b, const Function& function) {
  ValueSet result;
  for (const double x : {a.low, a.high}) {
    for (const double y : {b.low, b.high}) {
      const double value = function(x, y);
      if (std::isnan(value)) continue;
      result.low = Least(result.low, value);
      result.high = Most(result.high, value);
    }
  }
  return result;
}

// The product before rounding; an f64 product is always rounded once.
ValueSet ExactProduct(DType dtype, const ValueSet& a, const ValueSet& b) {
  ValueSet result;
  if (a.has_numbers() && b.has_numbers()) {
    result = Corners(a, b, [](double x, double y) { return x * y; });
    result.nan = (a.has_zero() && HasInfinity(b)) || (b.has_zero() && HasInfinity(a));
    // Zero times infinity is NaN at a corner, but zero times the numbers next to infinity is zero.
    if (result.nan && (a.low < a.high || b.low < b.high)) result = Hull(result, ValueSet::Floats(-0.0, 0.0));
    if (dtype == DType::kF64 && result.has_numbers()) {
      result.low = LowestOf(Op::kMul, dtype, result.low);
      result.high = HighestOf(Op::kMul, dtype, result.high);
    }
  }
  result.nan = result.nan || a.nan || b.nan;
  return result;
}

ValueSet Rounded(DType dtype, ValueSet set) {
  if (!set.has_numbers()) return set;
  set.low = RoundFloat(dtype, set.low);
  set.high = RoundFloat(dtype, set.high);
  return set;
}

ValueSet Quotient(DType dtype, const ValueSet& a, const ValueSet& b) {
  ValueSet result;
  if (a.has_numbers() && b.has_numbers()) {
    // The divisor may be a zero of either sign, or its interval contains zero.
    const bool around_zero = std::signbit(b.low) && !std::signbit(b.high);
    result = around_zero ? ValueSet::Floats(-kInfinite, kInfinite)
                         : Corners(a, b, [](double x, double y) { return x / y; });
    result.nan = (a.has_zero() && b.has_zero()) || (HasInfinity(a) && HasInfinity(b));
    if (result.has_numbers()) {
      result.low = LowestOf(Op::kDiv, dtype, result.low);
      result.high = HighestOf(Op::kDiv, dtype, result.high);
    }
  }
  result.nan = result.nan || a.nan || b.nan;
  return result;
}

// Both zeros.
ValueSet Extremum(Op op, const ValueSet& a, const ValueSet& b) {
  ValueSet result;
  if (a.has_numbers() && b.has_numbers()) {
    const bool smaller = op == Op::kMin;
    result.low = smaller ? Least(a.low, b.low) : Most(a.low, b.low);
    result.high = smaller ? Least(a.high, b.high) : Most(a.high, b.high);
    if (a.has_zero() && b.has_zero()) {
      if (result.low == 0) result.low = -0.0;
      if (result.high == 0) result.high = 0.0;
    }
  }
  result.nan = a.nan || b.nan;
  return result;
}

// A single pair of numbers exactly; intervals with positive bases by their corners, between which pow is
// monotone.
ValueSet Power(DType dtype, const ValueSet& a, const ValueSet& b) {
  const auto is_number = [](const ValueSet& x) {
    return !x.nan && x.low == x.high && std::signbit(x.low) == std::signbit(x.high);
  };
  const auto is_nan = [](const ValueSet& x) { return x.nan && !x.has_numbers(); };
  if ((is_number(a) || is_nan(a)) && (is_number(b) || is_nan(b))) {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    const double exact = Exact(Op::kPow, is_nan(a) ? kNan : a.low, is_nan(b) ? kNan : b.low);
    if (std::isnan(exact)) return ValueSet::Only(dtype, {exact, 0});
    return ValueSet::Floats(LowestOf(Op::kPow, dtype, exact), HighestOf(Op::kPow, dtype, exact));
  }
  if (a.nan || b.nan || !(a.low > 0)) return ValueSet::Anything(dtype);
  ValueSet result = Corners(a, b, [](double x, double y) { return Exact(Op::kPow, x, y); });
  result.low = LowestOf(Op::kPow, dtype, result.low);
  result.high = HighestOf(Op::kPow, dtype, result.high);
  return result;
}

ValueSet FloatUnary(Op op, DType dtype, const ValueSet& x) {
  switch (op) {
    case Op::kNeg: return Negative(x);
    case Op::kAbs: return Absolute(x);
    case Op::kRsqrt: return Rsqrt(dtype, x);
    case Op::kLog:
    case Op::kSqrt: return Monotone(op, dtype, WithoutNegatives(x), /*falls=*/false);
    case Op::kSin:
    case Op::kCos: return Periodic(op, dtype, x);
    case Op::kTanh:
    case Op::kErf: return Within(Monotone(op, dtype, x, /*falls=*/false), 1);
    default: return Monotone(op, dtype, x, /*falls=*/false);
  }
}

// Compares intervals of numbers; without `numbers` one of them is empty. With `nan` an operand may be NaN.
template <typename T>
ValueSet CompareIntervals(Op op, T a_low, T a_high, T b_low, T b_high, bool numbers, bool nan) {
  const bool meet = numbers && a_low <= b_high && b_low <= a_high;
  const bool one = numbers && a_low == a_high && b_low == b_high && a_low == b_low;
  bool can_hold = false, can_fail = nan;
  switch (op) {
    case Op::kLt: can_hold = numbers && a_low < b_high, can_fail |= numbers && a_high >= b_low; break;
    case Op::kLe: can_hold = numbers && a_low <= b_high, can_fail |= numbers && a_high > b_low; break;
    case Op::kEq: can_hold = meet, can_fail |= numbers && !one; break;
    default: can_hold = nan || (numbers && !one), can_fail = meet; break;
  }
  return ValueSet::Integers(can_fail ? 0 : 1, can_hold ? 1 : 0);
}

ValueSet ComparisonSet(Op op, const ValueSet& a, const ValueSet& b, bool of_floats) {
  if (!of_floats)
    return CompareIntervals(op, a.least, a.most, b.least, b.most, /*numbers=*/true, /*nan=*/false);
  return CompareIntervals(op, a.low, a.high, b.low, b.high, a.has_numbers() && b.has_numbers(),
                          a.nan || b.nan);
}

bool IsPoint(const ValueSet& integer) { return integer.least == integer.most; }

// Exact for single numbers. For intervals only monotone operations are handled.
ValueSet IntegerOp(Op op, DType dtype, const ValueSet* args) {
  const ValueSet &a = args[0], &b = IsBinary(op) ? args[1] : args[0];
  const auto at = [&](int64_t x, int64_t y) {
    const Scalar scalars[] = {{0, OrderOfInt(dtype, x)}, {0, OrderOfInt(dtype, y)}};
    return OrderOfInt(dtype, EvaluateOp(op, dtype, dtype, scalars).i);
  };
  const bool keeps_order = op == Op::kMin || op == Op::kMax || op == Op::kAnd || op == Op::kOr;
  if ((IsPoint(a) && IsPoint(b)) || keeps_order)
    return ValueSet::Integers(at(a.least, b.least), at(a.most, b.most));
  if (op == Op::kNot) return ValueSet::Integers(at(a.most, 0), at(a.least, 0));
  return ValueSet::Anything(dtype);
}

ValueSet CastToInteger(DType to, DType from, const ValueSet& x) {
  const auto at = [&](Scalar value) { return OrderOfInt(to, ConvertScalar(to, from, value).i); };
  if (!IsFloat(from)) {
    const int64_t least = OrderOfInt(from, x.least), most = OrderOfInt(from, x.most);
    const auto wraps = [&](int64_t value) {
      const bool changes_sign = value < 0 && (from == DType::kU64) != (to == DType::kU64);
      return changes_sign || ConvertScalar(to, from, {0, value}).i != value;
    };
    // Values that do not wrap keep their order.
    if (!IsPoint(x) && (wraps(least) || wraps(most))) return ValueSet::Anything(to);
    return ValueSet::Integers(at({0, least}), at({0, most}));
  }
  if (to == DType::kBool) return ComparisonSet(Op::kNe, x, ValueSet::Floats(0, 0), /*of_floats=*/true);
  const ValueSet of_nan = ValueSet::Only(to, {0, 0});
  if (!x.has_numbers()) return of_nan;
  const ValueSet numbers = ValueSet::Integers(at({x.low, 0}), at({x.high, 0}));
  return x.nan ? Hull(numbers, of_nan) : numbers;
}

ValueSet CastOf(DType to, DType from, const ValueSet& x) {
  if (!IsFloat(to)) return CastToInteger(to, from, x);
  ValueSet result = IsFloat(from)
                        ? Rounded(to, x)
                        : ValueSet::Floats(ConvertScalar(to, from, {0, OrderOfInt(from, x.least)}).f,
                                           ConvertScalar(to, from, {0, OrderOfInt(from, x.most)}).f);
  result.is_padding = x.is_padding;
  return result;
}

}  // namespace

bool IsLess(double a, double b) { return a < b || (a == b && std::signbit(a) && !std::signbit(b)); }

ValueSet ValueSet::Floats(double low, double high, bool nan) {
  ValueSet set;
  set.low = low, set.high = high, set.nan = nan;
  return set;
}

ValueSet ValueSet::Integers(int64_t least, int64_t most) {
  ValueSet set;
  set.least = least, set.most = most;
  return set;
}

ValueSet ValueSet::Only(DType dtype, Scalar value) {
  if (!IsFloat(dtype)) return Integers(OrderOfInt(dtype, value.i), OrderOfInt(dtype, value.i));
  return std::isnan(value.f) ? Floats(kInfinite, -kInfinite, true) : Floats(value.f, value.f);
}

ValueSet ValueSet::Anything(DType dtype) {
  if (IsFloat(dtype)) return Floats(-kInfinite, kInfinite, true);
  if (dtype == DType::kBool) return Integers(0, 1);
  return Integers(OrderOfInt(dtype, ReduceIdentity(ReduceOp::kMax, dtype)->value.i),
                  OrderOfInt(dtype, ReduceIdentity(ReduceOp::kMin, dtype)->value.i));
}

bool ValueSet::has_numbers() const { return !IsLess(high, low); }
bool ValueSet::has_zero() const { return low <= 0 && high >= 0; }

bool ValueSet::Contains(DType dtype, Scalar value) const {
  if (!IsFloat(dtype)) return OrderOfInt(dtype, value.i) >= least && OrderOfInt(dtype, value.i) <= most;
  if (std::isnan(value.f)) return nan;
  return !IsLess(value.f, low) && !IsLess(high, value.f);
}

ValueSet Hull(const ValueSet& a, const ValueSet& b) {
  ValueSet hull = ValueSet::Floats(Least(a.low, b.low), Most(a.high, b.high), a.nan || b.nan);
  hull.least = std::min(a.least, b.least);
  hull.most = std::max(a.most, b.most);
  return hull;
}

std::string Describe(DType dtype, const ValueSet& set) {
  if (!IsFloat(dtype)) {
    const std::string least = PrintInt(dtype, OrderOfInt(dtype, set.least));
    return set.least == set.most ? least
                                 : absl::StrCat(least, " to ", PrintInt(dtype, OrderOfInt(dtype, set.most)));
  }
  std::string text;
  if (set.has_numbers()) text = absl::StrFormat("%.9g", set.low);
  if (set.has_numbers() && IsLess(set.low, set.high)) text += absl::StrFormat(" to %.9g", set.high);
  if (set.nan) absl::StrAppend(&text, text.empty() ? "" : " or ", "nan");
  return text;
}

ValueSet PermittedProduct(DType dtype, const ValueSet& a, const ValueSet& b) {
  const double product = a.low * b.low;
  const bool are_numbers = a.low == a.high && b.low == b.high && !a.nan && !b.nan;
  if (are_numbers && product != 0 && std::isfinite(product) && dtype != DType::kF64) {  // most terms of sums
    const double rounded = RoundFloat(dtype, product);
    return ValueSet::Floats(std::min(product, rounded), std::max(product, rounded));
  }
  const ValueSet exact = ExactProduct(dtype, a, b);
  return Hull(exact, Rounded(dtype, exact));
}

ValueSet PermittedOf(Op op, DType dtype, DType operand_dtype, const ValueSet* args) {
  const bool of_floats = IsFloat(operand_dtype);
  switch (op) {
    case Op::kCast: return CastOf(dtype, operand_dtype, args[0]);
    case Op::kLt:
    case Op::kLe:
    case Op::kEq:
    case Op::kNe: return ComparisonSet(op, args[0], args[1], of_floats);
    default: break;
  }
  if (!IsFloat(dtype)) return IntegerOp(op, dtype, args);
  switch (op) {
    case Op::kAdd: return Sum(dtype, args[0], args[1]);
    case Op::kSub: return Sum(dtype, args[0], Negative(args[1]));
    case Op::kMul: return Rounded(dtype, ExactProduct(dtype, args[0], args[1]));
    case Op::kDiv: return Quotient(dtype, args[0], args[1]);
    case Op::kMin:
    case Op::kMax: return Extremum(op, args[0], args[1]);
    case Op::kPow: return Power(dtype, args[0], args[1]);
    default: return FloatUnary(op, dtype, args[0]);
  }
}

}  // namespace mycc
