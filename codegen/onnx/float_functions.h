// Functions that the language lacks, made of those that it has. The operand is f32 or f64, and the results
// are good to a few units in the last place; NaN stays NaN. Internal to this folder. Thread rule: pure
// functions.
#pragma once

#include "codegen/expr/expr.h"

namespace mycc::onnx {

Expr LogOfOnePlus(const Expr& x);  // log(1 + x), exact for small x too
Expr TanOf(const Expr& x);
Expr SinhOf(const Expr& x);
Expr CoshOf(const Expr& x);
Expr AtanOf(const Expr& x);
Expr AsinOf(const Expr& x);
Expr AcosOf(const Expr& x);
Expr AsinhOf(const Expr& x);
Expr AcoshOf(const Expr& x);
Expr AtanhOf(const Expr& x);

}  // namespace mycc::onnx
