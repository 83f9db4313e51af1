// The language's functions, the number types that each operation takes, and the reserved words. Thread rule:
// constant data.
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

// The names of FindFunction, and select and clamp.
std::vector<std::string> FunctionNames();

// The types that `op` takes, for an error message; "" when `dtype` is one of them. For select: the types of
// its arms.
std::string ExpectedOperands(Op op, DType dtype);
// The same for a reduction's operand.
std::string ExpectedOperands(ReduceOp op, DType dtype);

// kNone when the name is not a reduction's.
ReduceOp ParseReduceOp(const std::string& name);

// True for keywords, types, functions and literals: they cannot name workloads, tensors or axes.
bool IsReservedWord(const std::string& name);

}  // namespace mycc
