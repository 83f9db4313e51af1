// Walks and rewrites of the IR. A rewrite keeps every node that does not change, so that an unchanged tree is
// the same pointer.
#include "codegen/ir/stmt.h"

#include <utility>

namespace mycc {

Stmt MakeSeq(std::vector<Stmt> stmts) {
  const bool flat = std::none_of(stmts.begin(), stmts.end(),
                                 [](const Stmt& stmt) { return !stmt || stmt->kind == StmtKind::kSeq; });
  if (flat) return stmts.size() == 1 ? std::move(stmts[0]) : std::make_shared<Seq>(std::move(stmts));
  std::vector<Stmt> parts;
  const auto append = [&parts](const Stmt& stmt, const auto& self) -> void {
    if (!stmt) return;
    if (stmt->kind != StmtKind::kSeq) {
      parts.push_back(stmt);
      return;
    }
    for (const Stmt& part : As<Seq>(stmt).stmts) self(part, self);
  };
  for (const Stmt& stmt : stmts) append(stmt, append);
  return parts.size() == 1 ? std::move(parts[0]) : std::make_shared<Seq>(std::move(parts));
}

}  // namespace mycc
