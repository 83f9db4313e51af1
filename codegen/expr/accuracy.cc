#include "codegen/expr/accuracy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace mycc {
namespace {

constexpr double kCorrectlyRounded = 0.5;
// The f32 result rounded once more, to a type with at least 13 fewer bits.
constexpr double kNarrow = 0.51;

// CUDA's programming guide states errors relative to the correctly rounded result; half a unit is added for
// that rounding.
Accuracy OfF32(Op op) {
  switch (op) {
    case Op::kDiv: return {1.5, 2.5};
    case Op::kRsqrt: return {1.5, 2.5};
    case Op::kExp:
    case Op::kExp2: return {1.5, 2.5};
    case Op::kLog: return {1, 1.5};
    case Op::kTanh: return {3, 2.5};
    case Op::kErf: return {3, 2.5};
    case Op::kSin:
    case Op::kCos: return {2, 2.5};
    case Op::kPow: return {2, 4.5};
    default: return {kCorrectlyRounded, kCorrectlyRounded};
  }
}

// On a CPU libm computes these.
Accuracy OfF64(Op op) {
  switch (op) {
    case Op::kRsqrt: return {1.5, 1.5};
    case Op::kExp:
    case Op::kExp2:
    case Op::kLog:
    case Op::kTanh:
    case Op::kErf:
    case Op::kSin:
    case Op::kCos:
    case Op::kPow: return {2.5, 2.5};
    default: return {kCorrectlyRounded, kCorrectlyRounded};
  }
}

}  // namespace

Accuracy AccuracyOf(Op op, DType dtype) {
  if (dtype == DType::kF64) return OfF64(op);
  const Accuracy of_f32 = OfF32(op);
  if (dtype == DType::kF32) return of_f32;
  return {of_f32.cpu > kCorrectlyRounded ? kNarrow : kCorrectlyRounded,
          of_f32.cuda > kCorrectlyRounded ? kNarrow : kCorrectlyRounded};
}

int MantissaBits(DType dtype) {
  switch (dtype) {
    case DType::kF64: return 52;
    case DType::kF32: return 23;
    case DType::kF16: return 10;
    case DType::kBF16: return 7;
    case DType::kF8E4M3: return 3;
    case DType::kF8E5M2: return 2;
    default: MYCC_CHECK(false) << DTypeName(dtype) << " is no float"; return 0;
  }
}

double LargestNumber(DType dtype) {
  switch (dtype) {
    case DType::kF64: return std::numeric_limits<double>::max();
    case DType::kF32: return std::numeric_limits<float>::max();
    case DType::kF16: return 65504;
    case DType::kBF16: return 0x1.fep127;
    case DType::kF8E4M3: return 448;
    case DType::kF8E5M2: return 57344;
    default: MYCC_CHECK(false) << DTypeName(dtype) << " is no float"; return 0;
  }
}

double UnitInLastPlace(DType dtype, double magnitude) {
  const int least = std::ilogb(SmallestNormal(dtype));
  const int exponent = magnitude == 0 ? least : std::max(std::ilogb(magnitude), least);
  return std::ldexp(1.0, exponent - MantissaBits(dtype));
}

}  // namespace mycc
