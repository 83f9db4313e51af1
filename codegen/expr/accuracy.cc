#include "codegen/expr/accuracy.h"

#include <algorithm>
#include <cmath>

namespace mycc {
namespace {

constexpr double kCorrectlyRounded = 0.5;
// The f32 result rounded once more, to a type with at least 13 fewer bits.
constexpr double kNarrow = 0.51;

// CUDA's programming guide states errors relative to the correctly rounded result; half a unit is added for
// that rounding.
Accuracy OfF32(Op op) {
  switch (op) {
    case Op::kDiv:
    case Op::kRsqrt:
    case Op::kExp:
    case Op::kExp2: return {1.5, 2.5};
    case Op::kLog: return {1, 1.5};
    case Op::kTanh:
    case Op::kErf: return {3, 2.5};
    case Op::kSin:
    case Op::kCos: return {2, 2.5};
    case Op::kPow: return {2, 4.5};
    default: return {kCorrectlyRounded, kCorrectlyRounded};
  }
}

// On a CPU libm computes these.
Accuracy OfF64(Op op) {
  if (op == Op::kRsqrt) return {1.5, 1.5};
  return IsTranscendental(op) ? Accuracy{2.5, 2.5} : Accuracy{kCorrectlyRounded, kCorrectlyRounded};
}

}  // namespace

Accuracy AccuracyOf(Op op, DType dtype) {
  if (dtype == DType::kF64) return OfF64(op);
  const Accuracy of_f32 = OfF32(op);
  if (dtype == DType::kF32) return of_f32;
  return {of_f32.cpu > kCorrectlyRounded ? kNarrow : kCorrectlyRounded,
          of_f32.cuda > kCorrectlyRounded ? kNarrow : kCorrectlyRounded};
}

double UnitInLastPlace(DType dtype, double magnitude) {
  const int least = std::ilogb(SmallestNormal(dtype));
  const int exponent = magnitude == 0 ? least : std::max(std::ilogb(magnitude), least);
  return std::ldexp(1.0, exponent - MantissaBits(dtype));
}

}  // namespace mycc
