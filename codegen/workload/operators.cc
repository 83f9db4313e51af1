#include "codegen/workload/operators.h"

#include <algorithm>
#include <iterator>

namespace mycc {
namespace {

constexpr FunctionInfo kFunctions[] = {
    {"exp", Op::kExp, 1},     {"log", Op::kLog, 1},   {"sqrt", Op::kSqrt, 1},   {"rsqrt", Op::kRsqrt, 1},
    {"tanh", Op::kTanh, 1},   {"erf", Op::kErf, 1},   {"sin", Op::kSin, 1},     {"cos", Op::kCos, 1},
    {"floor", Op::kFloor, 1}, {"ceil", Op::kCeil, 1}, {"round", Op::kRound, 1}, {"abs", Op::kAbs, 1},
    {"tf32", Op::kTF32, 1},   {"min", Op::kMin, 2},   {"max", Op::kMax, 2},     {"pow", Op::kPow, 2},
};

constexpr std::string_view kWords[] = {"workload", "const", "in",  "true", "false",  "inf",   "nan",
                                       "select",   "clamp", "sum", "prod", "argmax", "argmin"};

}  // namespace

const FunctionInfo* FindFunction(const std::string& name) {
  const auto* it = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                [&](const FunctionInfo& f) { return f.name == name; });
  return it == std::end(kFunctions) ? nullptr : it;
}

std::vector<std::string> FunctionNames() {
  std::vector<std::string> names;
  for (const FunctionInfo& function : kFunctions) names.emplace_back(function.name);
  names.insert(names.end(), {"clamp", "select"});
  return names;
}

std::string ExpectedOperands(Op op, DType dtype) {
  switch (op) {
    case Op::kExp:
    case Op::kLog:
    case Op::kSqrt:
    case Op::kRsqrt:
    case Op::kTanh:
    case Op::kErf:
    case Op::kSin:
    case Op::kCos:
    case Op::kFloor:
    case Op::kCeil:
    case Op::kRound:
    case Op::kPow: return IsFloat(dtype) ? "" : "a float";
    case Op::kDiv: return IsFloat(dtype) ? "" : "floats (integers divide with `//`)";
    case Op::kTF32: return dtype == DType::kF32 ? "" : "f32";
    case Op::kFloorDiv:
    case Op::kMod: return IsInt(dtype) ? "" : "integers";
    case Op::kNeg:
    case Op::kAbs:
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kMin:
    case Op::kMax:
    case Op::kLt:
    case Op::kLe: return dtype != DType::kBool ? "" : "numbers (cast a bool, or use && || !)";
    case Op::kNot:
    case Op::kAnd:
    case Op::kOr: return dtype == DType::kBool ? "" : "bool";
    default: return "";
  }
}

std::string ExpectedOperands(ReduceOp op, DType dtype) {
  return op == ReduceOp::kNone || dtype != DType::kBool ? "" : "numbers (cast a bool, for example i32(...))";
}

ReduceOp ParseReduceOp(const std::string& name) {
  for (int i = 1; i <= static_cast<int>(ReduceOp::kArgMin); ++i) {
    if (ReduceOpName(static_cast<ReduceOp>(i)) == name) return static_cast<ReduceOp>(i);
  }
  return ReduceOp::kNone;
}

bool IsReservedWord(const std::string& name) {
  return FindFunction(name) != nullptr || ParseDType(name).has_value() ||
         std::find(std::begin(kWords), std::end(kWords), name) != std::end(kWords);
}

}  // namespace mycc
