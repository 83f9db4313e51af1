#include "codegen/workload/tolerance.h"

#include <algorithm>
#include <cmath>

namespace mycc {
namespace {

// Half the distance from 1 to the next number: what one rounding may cost. 0 for types that are exact.
double UnitRoundoff(DType dtype) {
  switch (dtype) {
    case DType::kF64: return 0x1p-53;
    case DType::kF32: return 0x1p-24;
    case DType::kF16: return 0x1p-11;
    case DType::kBF16: return 0x1p-8;
    default: return 0;
  }
}

// Roundings that are part of the computation: written casts, and tf32.
double CoarsestIn(const Expr& expr) {
  double coarsest = UnitRoundoff(expr->dtype);
  Visit(expr, [&coarsest](const ExprNode& node) {
    if (node.op == Op::kTF32) coarsest = std::max(coarsest, 0x1p-11);
    // Only what is computed rounds; what is loaded or constant has its value.
    if (node.op != Op::kLoad && node.op != Op::kConst)
      coarsest = std::max(coarsest, UnitRoundoff(node.dtype));
  });
  return coarsest;
}

}  // namespace

Tolerance ToleranceOf(const Workload& workload) {
  // Error of the reductions: unit roundoff times the growth of a random walk over their terms.
  double summed = 0;
  double rounded = 0;  // of single roundings, one for each stage
  for (const Stage& stage : workload.stages) {
    double terms = 1;
    for (const Var& axis : stage.reduce_axes) terms *= static_cast<double>(axis->extent);
    const double value = UnitRoundoff(stage.value->dtype);
    if (stage.reduce == ReduceOp::kSum || stage.reduce == ReduceOp::kProd)
      summed += value * (16 + 8 * std::sqrt(terms));
    // A value near a rounding boundary goes either way, in each implementation.
    rounded += 4 * std::max(CoarsestIn(stage.value), UnitRoundoff(stage.output->dtype));
  }
  return {.of_value = summed + 2 * rounded, .of_scale = summed + rounded};
}

}  // namespace mycc
