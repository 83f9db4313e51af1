// The rules for an index expression: it is quasi-affine over axes, and may contain loads whose own indices
// contain none. Thread rule: pure functions.
#pragma once

#include <string>

#include "codegen/expr/expr.h"

namespace mycc {

// An integer expression as an i64 one of the same value, with conversions on the reads themselves:
// `i64(clamp(idx[i], 0, 9))` becomes `clamp(i64(idx[i]), 0, 9)`. nullptr where that is not possible
// (arithmetic in a narrower type, which may wrap).
Expr WidenIndex(const Expr& index);

// The error of an i64 index, with the expectation: not quasi-affine, a load inside a load's index, or
// arithmetic that may overflow 64 bits. "" without an error. bounds.h checks that indices are inside their
// tensors.
std::string IndexProblem(const Expr& index);

// True for quasi-affine arithmetic that reads no tensor and stays far inside 64 bits. Only conditions over
// such expressions are used in proofs.
bool IsAffineOfAxes(const Expr& expr);

// An expression for an error message: in backquotes, and shortened when it is long.
std::string Quote(const Expr& expr);

}  // namespace mycc
