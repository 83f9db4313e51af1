#include "codegen/expr/conjunction.h"

#include <algorithm>

namespace mycc {

void SplitConjunction(const Expr& condition, std::vector<Expr>* parts) {
  if (condition->op == Op::kAnd) {
    SplitConjunction(condition->args[0], parts);
    return SplitConjunction(condition->args[1], parts);
  }
  const auto is_same = [&](const Expr& part) { return StructurallyEqual(part, condition); };
  if (std::ranges::none_of(*parts, is_same)) parts->push_back(condition);
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
