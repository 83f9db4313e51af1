// Reads of constants of one element become literals, and arithmetic on literals alone is computed.
#include <unordered_map>

#include "codegen/expr/eval.h"
#include "codegen/graph/passes/passes.h"

namespace mycc {
namespace {

Expr Literal(DType dtype, Scalar value) {
  if (IsFloat(dtype)) return FloatConst(value.f, dtype);
  return dtype == DType::kBool ? BoolConst(value.i != 0) : IntConst(value.i, dtype);
}

bool IsLiteral(const Expr& expr) { return expr->op == Op::kConst; }

// Arithmetic on literals alone, computed as a kernel would.
Expr Folded(const Expr& expr) {
  if (expr->op == Op::kSelect && IsLiteral(expr->args[0]))
    return expr->args[expr->args[0]->value.i != 0 ? 1 : 2];
  const bool is_operation = IsUnary(expr->op) || IsBinary(expr->op) || expr->op == Op::kCast;
  if (!is_operation || expr->args.empty()) return nullptr;
  Scalar args[2];
  for (size_t i = 0; i < expr->args.size(); ++i) {
    if (!IsLiteral(expr->args[i])) return nullptr;
    args[i] = expr->args[i]->value;
  }
  return Literal(expr->dtype, EvaluateOp(expr->op, expr->dtype, expr->args[0]->dtype, args));
}

}  // namespace

Graph InlineConstants(Graph graph, const Target&) {
  std::unordered_map<const BufferNode*, Constant> numbers;
  for (Node& node : graph.nodes) {
    if (const Constant* constant = std::get_if<Constant>(&node.made_by)) {
      if ((*constant)->num_elements() == 1) numbers[node.outputs[0].get()] = *constant;
    }
    if (Stage* stage = std::get_if<Stage>(&node.made_by)) {
      stage->value = Rewrite(stage->value, [&](const Expr& expr) -> Expr {
        if (expr->op != Op::kLoad) return Folded(expr);
        const auto number = numbers.find(expr->buffer.get());
        return number == numbers.end() ? nullptr : Literal(expr->dtype, number->second->Get(0));
      });
    }
  }
  return graph;
}

}  // namespace mycc
