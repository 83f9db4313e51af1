#include "codegen/onnx/float_functions.h"

#include <cmath>
#include <limits>
#include <span>

#include "codegen/onnx/elementwise.h"

namespace mycc::onnx {
namespace {

// Horner's rule; the coefficient of the highest power is the first.
Expr Polynomial(const Expr& x, std::span<const double> coefficients) {
  Expr sum = NumberLike(x, coefficients[0]);
  for (double coefficient : coefficients.subspan(1)) sum = sum * x + NumberLike(x, coefficient);
  return sum;
}

Expr WithSignOf(const Expr& x, const Expr& magnitude) {
  return MakeSelect(LessThan(x, NumberLike(x, 0)), Negative(magnitude), magnitude);
}

// (atan(x) - x) / x for |x| <= 0.66, as a function of x^2; the coefficients are those of the Cephes library.
Expr AtanSeries(const Expr& z) {
  if (z->dtype == DType::kF32) {
    constexpr double kSeries[] = {8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1};
    return Polynomial(z, kSeries) * z;
  }
  constexpr double kAbove[] = {-8.750608600031904122785e-1, -1.615753718733365076637e1,
                               -7.500855792314704667340e1, -1.228866684490136173410e2,
                               -6.485021904942025371773e1};
  constexpr double kBelow[] = {1,
                               2.485846490142306297962e1,
                               1.650270098316988542046e2,
                               4.328810604912902668951e2,
                               4.853903996359136964868e2,
                               1.945506571482613964425e2};
  return Quotient(z * Polynomial(z, kAbove), Polynomial(z, kBelow));
}

// sinh(x) / x for |x| < 1, as a function of x^2.
Expr SinhSeries(const Expr& z) {
  constexpr int kTerms = 10;  // enough for f64
  double series[kTerms], factorial = 1;
  series[kTerms - 1] = 1;
  for (int i = 1; i < kTerms; ++i) {
    factorial *= (2.0 * i) * (2.0 * i + 1);
    series[kTerms - 1 - i] = 1 / factorial;
  }
  const std::span<const double> all(series);
  return Polynomial(z, z->dtype == DType::kF64 ? all : all.last(6));
}

// exp(|x|) / 2, which overflows only where sinh and cosh do.
Expr HalfExponential(const Expr& x) {
  const Expr root = ExpOf(Magnitude(x) * NumberLike(x, 0.5));
  return NumberLike(x, 0.5) * root * root;
}

}  // namespace

// The rounding error of 1 + x is made good by the quotient. (Kahan's method.)
Expr LogOfOnePlus(const Expr& x) {
  const Expr sum = NumberLike(x, 1) + x, added = sum - NumberLike(x, 1), log = MakeUnary(Op::kLog, sum);
  const Expr is_exact = MakeBinary(Op::kEq, added, x);
  const Expr is_nothing = MakeBinary(Op::kEq, added, NumberLike(x, 0));
  return MakeSelect(is_exact, log, MakeSelect(is_nothing, x, log * Quotient(x, added)));
}

Expr TanOf(const Expr& x) { return Quotient(MakeUnary(Op::kSin, x), MakeUnary(Op::kCos, x)); }

Expr SinhOf(const Expr& x) {
  const Expr half = HalfExponential(x);
  const Expr large = WithSignOf(x, half - Quotient(NumberLike(x, 0.25), half));
  return MakeSelect(LessThan(Magnitude(x), NumberLike(x, 1)), x * SinhSeries(x * x), large);
}

Expr CoshOf(const Expr& x) {
  const Expr half = HalfExponential(x);
  return half + Quotient(NumberLike(x, 0.25), half);
}

// Beyond tan(3 pi / 8), and from 0.41 or 0.66 on, the argument is brought to the series by the function's own
// laws.
Expr AtanOf(const Expr& x) {
  const Expr a = Magnitude(x), one = NumberLike(x, 1);
  const Expr is_large = LessThan(NumberLike(x, 2.414213562373095), a);
  const Expr is_middle = LessThan(NumberLike(x, x->dtype == DType::kF32 ? 0.4142135623730950 : 0.66), a);
  const Expr y = MakeSelect(is_large, Quotient(NumberLike(x, -1), a),
                            MakeSelect(is_middle, Quotient(a - one, a + one), a));
  const Expr base = MakeSelect(is_large, NumberLike(x, M_PI_2),
                               MakeSelect(is_middle, NumberLike(x, M_PI_4), NumberLike(x, 0)));
  return WithSignOf(x, base + (y + y * AtanSeries(y * y)));
}

Expr AsinOf(const Expr& x) {
  const Expr one = NumberLike(x, 1);
  return AtanOf(Quotient(x, MakeUnary(Op::kSqrt, (one - x) * (one + x))));
}

Expr AcosOf(const Expr& x) {
  const Expr one = NumberLike(x, 1);
  return NumberLike(x, 2) * AtanOf(MakeUnary(Op::kSqrt, Quotient(one - x, one + x)));
}

// From `kLarge` on, asinh and acosh are log(2 x) to all places, and x^2 might overflow.
constexpr double kLargeF32 = 1e4, kLargeF64 = 1e8;

Expr AsinhOf(const Expr& x) {
  const Expr a = Magnitude(x), one = NumberLike(x, 1), square = a * a;
  const Expr small = LogOfOnePlus(a + Quotient(square, one + MakeUnary(Op::kSqrt, square + one)));
  const Expr large = MakeUnary(Op::kLog, a) + NumberLike(x, M_LN2);
  const Expr is_large = LessThan(NumberLike(x, x->dtype == DType::kF32 ? kLargeF32 : kLargeF64), a);
  return WithSignOf(x, MakeSelect(is_large, large, small));
}

Expr AcoshOf(const Expr& x) {
  const Expr above = x - NumberLike(x, 1), two = NumberLike(x, 2);
  const Expr small = LogOfOnePlus(above + MakeUnary(Op::kSqrt, above * (above + two)));
  const Expr large = MakeUnary(Op::kLog, x) + NumberLike(x, M_LN2);
  const Expr is_large = LessThan(NumberLike(x, x->dtype == DType::kF32 ? kLargeF32 : kLargeF64), x);
  const Expr nan = NumberLike(x, std::numeric_limits<double>::quiet_NaN());
  return MakeSelect(LessThan(x, NumberLike(x, 1)), nan, MakeSelect(is_large, large, small));
}

Expr AtanhOf(const Expr& x) {
  const Expr a = Magnitude(x), one = NumberLike(x, 1);
  return WithSignOf(x, NumberLike(x, 0.5) * LogOfOnePlus(Quotient(a + a, one - a)));
}

}  // namespace mycc::onnx
