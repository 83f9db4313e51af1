// Walks over statements: children, visits, rebuilding. Pure functions.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/stmt.h"

namespace mycc {

// The children of a statement in order (bodies, parts, arms, roles), and the same statement over other
// children. Null children (an absent else) are left out of Children.
std::vector<Stmt> Children(const Stmt& stmt);
Stmt WithChildren(const Stmt& stmt, std::vector<Stmt> children);
// The statement with each child mapped; the same pointer when `map` returns every child as it is.
Stmt MapChildren(const Stmt& stmt, const std::function<Stmt(const Stmt&)>& map);

// Calls `visit` on every statement, parents first; a false return skips its children.
void VisitStmts(const Stmt& root, const std::function<bool(const Stmt&)>& visit);
// The same with no children skipped; `visit` returns nothing.
template <typename VisitFn>
void ForEachStmt(const Stmt& root, const VisitFn& visit) {
  VisitStmts(root, [&](const Stmt& stmt) {
    visit(stmt);
    return true;
  });
}
// The same for statements of one kind.
template <typename Kind, typename VisitFn>
void VisitEach(const Stmt& root, const VisitFn& visit) {
  ForEachStmt(root, [&](const Stmt& stmt) {
    if (const Kind* one = DynAs<Kind>(stmt)) visit(*one);
  });
}

// Whether the statement, or one under it, is as the predicate says.
bool AnyStmt(const Stmt& root, const std::function<bool(const Stmt&)>& holds);
// The same about statements of one kind: the first of them, parents first, or null; and whether there is one.
template <typename Kind, typename Predicate>
const Kind* FirstOf(const Stmt& root, const Predicate& holds) {
  const Kind* first = nullptr;
  AnyStmt(root, [&](const Stmt& stmt) {
    const Kind* one = DynAs<Kind>(stmt);
    if (one != nullptr && holds(*one)) first = one;
    return first != nullptr;
  });
  return first;
}
template <typename Kind, typename Predicate>
bool AnyOf(const Stmt& root, const Predicate& holds) {
  return FirstOf<Kind>(root, holds) != nullptr;
}
bool Contains(const Stmt& root, StmtKind kind);
// The statements from the root (first) down to the first that is as the predicate says (last); empty when
// there is none.
std::vector<Stmt> PathTo(const Stmt& root, const std::function<bool(const Stmt&)>& holds);

// Rebuilds bottom-up; `rewrite` returns the replacement or nullptr to keep. Same pointer when nothing
// changed. The second form asks about statements of one kind.
Stmt RewriteStmts(const Stmt& root, const std::function<Stmt(const Stmt&)>& rewrite);
template <typename Kind, typename RewriteFn>
Stmt RewriteEach(const Stmt& root, const RewriteFn& rewrite) {
  return RewriteStmts(root, [&](const Stmt& stmt) -> Stmt {
    const Kind* one = DynAs<Kind>(stmt);
    return one != nullptr ? rewrite(*one) : nullptr;
  });
}
// The same where `rewrite`, which returns a StatusOr<Stmt>, may fail: the first error.
template <typename Kind, typename RewriteFn>
absl::StatusOr<Stmt> TryRewriteEach(const Stmt& root, const RewriteFn& rewrite) {
  absl::Status status;
  Stmt rewritten = RewriteEach<Kind>(root, [&](const Kind& one) -> Stmt {
    if (!status.ok()) return nullptr;
    const absl::StatusOr<Stmt> made = rewrite(one);
    status = made.status();
    return made.ok() ? *made : nullptr;
  });
  if (!status.ok()) return status;
  return rewritten;
}
// The tree with another statement in the place of `old`.
Stmt ReplaceStmt(const Stmt& root, const StmtNode* old, const Stmt& replacement);

}  // namespace mycc
