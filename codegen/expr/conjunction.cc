#include "codegen/expr/conjunction.h"

namespace mycc {

void SplitConjunction(const Expr& condition, std::vector<Expr>* parts) {
  if (condition->op == Op::kAnd) {
    SplitConjunction(condition->args[0], parts);
    SplitConjunction(condition->args[1], parts);
    return;
  }
  for (const Expr& part : *parts) {
    if (StructurallyEqual(part, condition)) return;
  }
  parts->push_back(condition);
}

std::vector<Expr> SplitConjunction(const Expr& condition) {
  std::vector<Expr> parts;
  SplitConjunction(condition, &parts);
  return parts;
}

Expr JoinConjunction(const std::vector<Expr>& parts) {
  Expr all = BoolConst(true);
  for (const Expr& part : parts) all = MakeBinary(Op::kAnd, all, part);
  return all;
}

}  // namespace mycc
