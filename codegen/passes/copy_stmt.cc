#include "codegen/passes/copy_stmt.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/expr/affine.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
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

}  // namespace mycc
