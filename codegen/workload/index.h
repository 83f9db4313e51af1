// The rules for an index expression: quasi-affine over axes, with one level of data. Thread rule: pure
// functions.
#pragma once

#include <string>

#include "codegen/expr/expr.h"

namespace mycc {

// An integer expression as an i64 one of the same value, with conversions on the reads themselves:
// `i64(clamp(idx[i], 0, 9))` becomes `clamp(i64(idx[i]), 0, 9)`. nullptr where that is not possible
// (arithmetic in a narrower type, which may wrap).
Expr WidenIndex(const Expr& index);

// The error of an i64 index, and what was expected: not quasi-affine, data within data, or arithmetic that
// may leave 64 bits. "" when it is fine. Whether it is inside a tensor is bounds.h's question.
std::string IndexProblem(const Expr& index);

// True for quasi-affine arithmetic that reads no tensor and stays far inside 64 bits: what conditions are
// understood by.
bool IsAffineOfAxes(const Expr& expr);

// An expression as error messages show it: in backquotes, cut where it is long.
std::string Quote(const Expr& expr);

}  // namespace mycc
