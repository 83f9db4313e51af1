// Prints expressions in the language's own syntax: `max(a[n,k] + b[k], 0.0)`. Floats have the fewest digits
// that read back as the same value in their type; inf and nan are words.
#pragma once

#include <functional>
#include <string>

#include "codegen/expr/expr.h"

namespace mycc {

struct PrintNames {
  // The names of variables and buffers; by default their own.
  std::function<std::string(const VarNode&)> var;
  std::function<std::string(const BufferNode&)> buffer;
};
std::string PrintExpr(const Expr& expr, const PrintNames& names = {});
// A literal of the language: "1.0", "-inf", "3", "true", "f16(0.5)" where the type is not the literal's
// default (f32, i64).
std::string PrintLiteral(DType dtype, Scalar value);

}  // namespace mycc
