// Walks over statements: children, visits, rebuilding. Pure functions.
#pragma once

#include <functional>
#include <vector>

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
bool Contains(const Stmt& root, StmtKind kind);
// Rebuilds bottom-up; `rewrite` returns the replacement or nullptr to keep. Same pointer when nothing
// changed.
Stmt RewriteStmts(const Stmt& root, const std::function<Stmt(const Stmt&)>& rewrite);

}  // namespace mycc
