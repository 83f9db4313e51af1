#include "codegen/workload/tolerance.h"

#include <algorithm>
#include <cmath>

namespace mycc {
namespace {

// The unit roundoff: half the distance from 1 to the next number. 0 for exact types.
double UnitRoundoff(DType dtype) {
  switch (dtype) {
    case DType::kF64: return 0x1p-53;
    case DType::kF32: return 0x1p-24;
    case DType::kF16: return 0x1p-11;
    case DType::kBF16: return 0x1p-8;
    case DType::kF8E4M3: return 0x1p-4;
    case DType::kF8E5M2: return 0x1p-3;
    default: return 0;
  }
}

// Operations whose result is one of the operands, or its negative.
bool OnlyChooses(Op op) {
  return op == Op::kSelect || op == Op::kMin || op == Op::kMax || op == Op::kNeg || op == Op::kAbs;
}

// Roundings that the workload itself asks for: casts, and tf32.
double CoarsestIn(const Expr& expr) {
  double coarsest = IsFloat8(expr->dtype) ? 0 : UnitRoundoff(expr->dtype);
  Visit(expr, [&coarsest](const ExprNode& node) {
    if (node.op == Op::kTF32) coarsest = std::max(coarsest, 0x1p-11);
    // Only computed values are rounded; loaded and constant ones are exact.
    if (IsFloat8(node.dtype) && OnlyChooses(node.op)) return;
    if (node.op != Op::kLoad && node.op != Op::kConst)
      coarsest = std::max(coarsest, UnitRoundoff(node.dtype));
  });
  return coarsest;
}

// The error from values near a rounding boundary, which two implementations may round in different
// directions. For an 8-bit float it is one step: several would permit too much.
double OffBy(double unit) { return unit >= UnitRoundoff(DType::kF8E4M3) ? 2 * unit : 4 * unit; }

bool IsRead(const Workload& workload, const Buffer& tensor) {
  for (const Stage& stage : workload.stages) {
    bool read = false;
    Visit(stage.value, [&](const ExprNode& node) { read |= node.op == Op::kLoad && node.buffer == tensor; });
    if (read) return true;
  }
  return false;
}

// f32(x) * f32(y) of 8-bit floats.
bool IsProductOfFloat8(const Expr& expr) {
  if (expr->op != Op::kMul || expr->dtype != DType::kF32) return false;
  return std::ranges::all_of(expr->args, [](const Expr& factor) {
    return factor->op == Op::kCast && IsFloat8(factor->args[0]->dtype);
  });
}

}  // namespace

Tolerance ToleranceOf(const Workload& workload) {
  // Error of the reductions: unit roundoff times the growth of a random walk over their terms.
  double summed = 0;
  double rounded = 0;  // error of single roundings, one for each stage
  double last = 0;     // error of the last rounding of an 8-bit output: one step of that element
  for (const Stage& stage : workload.stages) {
    double terms = 1;
    for (const Var& axis : stage.reduce_axes) terms *= static_cast<double>(axis->extent);
    const double value = UnitRoundoff(stage.value->dtype);
    if (stage.reduce == ReduceOp::kSum || stage.reduce == ReduceOp::kProd)
      summed += value * (16 + 8 * std::sqrt(terms));
    // Tensor cores have 14 bits for partial sums of these (target/instructions.h).
    if (stage.reduce == ReduceOp::kSum && IsProductOfFloat8(stage.value)) summed += 0x1p-9;
    const bool narrowed = IsFloat8(stage.value->dtype) && stage.value->op == Op::kCast;
    if (narrowed && !IsRead(workload, stage.output)) {
      last = std::max(last, OffBy(value));
      rounded += OffBy(CoarsestIn(stage.value->args[0]));
    } else {
      const double out = IsFloat8(stage.output->dtype) ? 0 : UnitRoundoff(stage.output->dtype);
      rounded += OffBy(std::max(CoarsestIn(stage.value), out));
    }
  }
  // The distance between subnormal numbers does not shrink with the value.
  return {.of_value = summed + 2 * rounded + last, .of_scale = summed + rounded + last / 4};
}

}  // namespace mycc
