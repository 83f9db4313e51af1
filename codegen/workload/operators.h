// The language's words: its functions, the number types that each operation takes, and the words that cannot
// be names. Thread rule: constant data.
#pragma once

#include <string>
#include <vector>

#include "codegen/expr/expr.h"

namespace mycc {

// A function written `name(a)` or `name(a, b)`. select, clamp and the casts have rules of their own.
struct FunctionInfo {
  std::string_view name;
  Op op;
  int arity;
};
const FunctionInfo* FindFunction(const std::string& name);

// Those of FindFunction, select and clamp.
std::vector<std::string> FunctionNames();

// The types that `op` takes, in words, when `dtype` is not among them; "" when it is. For select: its arms'.
std::string ExpectedOperands(Op op, DType dtype);
// The same for a reduction's operand.
std::string ExpectedOperands(ReduceOp op, DType dtype);

// kNone when the name is not a reduction's.
ReduceOp ParseReduceOp(const std::string& name);

// Keywords, types, functions and literals; the rest may name workloads, tensors and axes.
bool IsReservedWord(const std::string& name);

}  // namespace mycc
