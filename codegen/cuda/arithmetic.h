// Emits arithmetic of the language's number types as CUDA C++, with the semantics of expr/eval.h.
//
// In registers, floats of 16 and 8 bits are floats with a representable value, and integers of 16 and 8 bits
// are ints within their range. In memory they have the prelude's types. Thread rule: one owner.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "codegen/cuda/prelude.h"
#include "codegen/expr/expr.h"

namespace mycc {

// A C++ expression with the precedence of its outermost operator; a larger level binds more tightly.
struct Code {
  std::string text;
  int level;

  // The text, in parentheses where an operand must bind at least as tightly as `needed`.
  std::string At(int needed) const { return level < needed ? "(" + text + ")" : text; }
};
inline constexpr int kPrimary = 16, kUnaryLevel = 15, kProduct = 13, kSum = 12, kShift = 11, kRelation = 9,
                     kEquality = 8, kBitAnd = 7, kBothOf = 4, kEitherOf = 3, kTernary = 2;

inline Code Primary(std::string text) { return Code{std::move(text), kPrimary}; }
// An operation that associates to the left.
inline Code Infix(const char* op, int level, const Code& a, const Code& b) {
  return Code{a.At(level) + " " + op + " " + b.At(level + 1), level};
}

class Arithmetic {
 public:
  explicit Arithmetic(Prelude* prelude) : prelude_(*prelude) {}

  std::string MemoryType(DType dtype) const;    // "bf16"
  std::string RegisterType(DType dtype) const;  // "float"
  Code FromMemory(DType dtype, Code stored) const;
  Code ToMemory(DType dtype, Code value) const;
  Code Literal(DType dtype, Scalar value) const;

  Code Unary(Op op, DType dtype, const Code& a) const;
  Code Binary(Op op, DType dtype, const Code& a, const Code& b) const;
  // The same without rounding a narrow float's result, for sums that are kept in registers with more
  // precision.
  Code WideBinary(Op op, DType dtype, const Code& a, const Code& b) const;
  static Code Compare(Op op, const Code& a, const Code& b);
  Code Cast(DType to, DType from, const Code& value) const;
  static Code Select(const Code& condition, const Code& then, const Code& otherwise);
  // Rounds or wraps a value in its register's type to the values of `dtype`.
  Code Round(DType dtype, const Code& value) const;

 private:
  template <typename... Codes>
  static Code Call(const std::string& function, const Codes&... args) {
    return Primary(absl::StrCat(function, "(", absl::StrJoin({args.text...}, ", "), ")"));
  }
  Code FloatUnary(Op op, DType dtype, const Code& a) const;
  // For integers and bools.
  Code IntBinary(Op op, DType dtype, const Code& a, const Code& b) const;
  Code FloatToInt(DType to, const Code& value) const;

  Prelude& prelude_;
};

}  // namespace mycc
