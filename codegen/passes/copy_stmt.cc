#include "codegen/passes/copy_stmt.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/expr/affine.h"
#include "codegen/schedule/tree.h"

namespace mycc {

Stmt CopyWithSuffix(const Stmt& stmt, const std::string& suffix) {
  VarMap renamed;
  std::vector<Buffer> buffers;
  VisitStmts(stmt, [&](const Stmt& s) {
    const For* loop = DynAs<For>(s);
    const Let* let = DynAs<Let>(s);
    if (loop != nullptr || let != nullptr) {
      const Var& var = loop != nullptr ? loop->var : let->var;
      renamed[var.get()] = VarRef(MakeVar(absl::StrCat(var->name, suffix), var->extent));
    }
    if (const Alloc* alloc = DynAs<Alloc>(s)) buffers.push_back(alloc->buffer);
    return true;
  });
  if (renamed.empty() && buffers.empty()) return stmt;
  Stmt copy = SubstituteVars(stmt, renamed);
  copy = RewriteStmts(copy, [&](const Stmt& s) -> Stmt {
    if (const Let* let = DynAs<Let>(s))
      return std::make_shared<Let>(renamed.at(let->var.get())->var, let->value, let->body);
    const For* loop = DynAs<For>(s);
    if (loop == nullptr) return nullptr;
    return std::make_shared<For>(renamed.at(loop->var.get())->var, loop->extent, loop->loop_kind, loop->body,
                                 loop->marks);
  });
  for (const Buffer& buffer : buffers) {
    BufferNode renamed_node = *buffer;
    renamed_node.name += suffix;
    const Buffer fresh = std::make_shared<BufferNode>(std::move(renamed_node));
    copy = ReplaceBuffer(copy, buffer, fresh);
    copy = RewriteStmts(copy, [&](const Stmt& s) -> Stmt {
      const Alloc* alloc = DynAs<Alloc>(s);
      return alloc != nullptr && alloc->buffer == buffer ? std::make_shared<Alloc>(fresh, alloc->body)
                                                         : nullptr;
    });
  }
  return copy;
}

namespace {

bool UsesAnyKey(const ExprNode& expr, const VarMap& map) {
  if (expr.op == Op::kVar) return map.count(expr.var.get()) > 0;
  return std::any_of(expr.args.begin(), expr.args.end(),
                     [&](const Expr& arg) { return UsesAnyKey(*arg, map); });
}

}  // namespace

Stmt SubstituteSimplified(const Stmt& stmt, const VarMap& map) {
  return MapAllExprs(stmt, [&](const Expr& expr) {
    return UsesAnyKey(*expr, map) ? Simplify(Substitute(expr, map)) : expr;
  });
}

int64_t CountLeaves(const Stmt& stmt) {
  int64_t leaves = 0;
  VisitStmts(stmt, [&](const Stmt& s) {
    leaves += s->kind == StmtKind::kStore || s->kind == StmtKind::kCombine || s->kind == StmtKind::kMma;
    return true;
  });
  return leaves;
}

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

Expr JoinConjunction(const std::vector<Expr>& parts) {
  Expr all = BoolConst(true);
  for (const Expr& part : parts) all = MakeBinary(Op::kAnd, all, part);
  return all;
}

ReduceOp ReductionOf(const Store& store) {
  const Expr& value = store.value;
  if (!IsBinary(value->op) || value->args[0]->op != Op::kLoad || value->args[0]->buffer != store.buffer)
    return ReduceOp::kNone;
  for (size_t d = 0; d < store.indices.size(); ++d) {
    if (!StructurallyEqual(store.indices[d], value->args[0]->args[d])) return ReduceOp::kNone;
  }
  switch (value->op) {
    case Op::kAdd: return ReduceOp::kSum;
    case Op::kMul: return ReduceOp::kProd;
    case Op::kMax: return ReduceOp::kMax;
    case Op::kMin: return ReduceOp::kMin;
    default: return ReduceOp::kNone;
  }
}

std::unordered_set<const VarNode*> LoopVarsInCopies(const Stmt& body) {
  std::unordered_set<const VarNode*> vars;
  VisitStmts(body, [&](const Stmt& stmt) {
    if (const Copy* copy = DynAs<Copy>(stmt)) vars.merge(LoopVarsUnder(copy->body));
    return true;
  });
  return vars;
}

std::optional<int64_t> ConstExtent(const For& loop) {
  int64_t extent = 0;
  if (!IsConstInt(loop.extent, &extent)) return std::nullopt;
  return extent;
}

}  // namespace mycc
