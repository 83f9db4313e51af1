#include "codegen/ir/visit.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "codegen/ir/cpu_stmts.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/vector_stmts.h"

namespace mycc {

namespace {

// Calls `visit` on each child, in order.
template <typename Node, typename VisitFn>
void ForEachChild(Node& node, const VisitFn& visit) {
  switch (node.kind) {
    case StmtKind::kSeq:
      for (auto& part : NodeAs<Seq>(node).stmts) visit(part);
      return;
    case StmtKind::kIf:
      visit(NodeAs<If>(node).then);
      if (NodeAs<If>(node).otherwise) visit(NodeAs<If>(node).otherwise);
      return;
    case StmtKind::kRoles:
      for (auto& role : NodeAs<Roles>(node).roles) visit(role.body);
      return;
    case StmtKind::kFor: return visit(NodeAs<For>(node).body);
    case StmtKind::kLet: return visit(NodeAs<Let>(node).body);
    case StmtKind::kAlloc: return visit(NodeAs<Alloc>(node).body);
    case StmtKind::kLaunch: return visit(NodeAs<Launch>(node).body);
    case StmtKind::kCopy: return visit(NodeAs<Copy>(node).body);
    case StmtKind::kVectors: return visit(NodeAs<Vectors>(node).loop);
    case StmtKind::kBypass: return visit(NodeAs<Bypass>(node).body);
    case StmtKind::kTileMove: return visit(NodeAs<TileMove>(node).nest);
    case StmtKind::kTileRegion:
      visit(NodeAs<TileRegion>(node).begin);
      visit(NodeAs<TileRegion>(node).products);
      return visit(NodeAs<TileRegion>(node).end);
    default: return;
  }
}

}  // namespace

std::vector<Stmt> Children(const Stmt& stmt) {
  std::vector<Stmt> children;
  ForEachChild(*stmt, [&](const Stmt& child) { children.push_back(child); });
  return children;
}

Stmt WithChildren(const Stmt& stmt, std::vector<Stmt> children) {
  if (stmt->kind == StmtKind::kSeq) return MakeSeq(std::move(children));
  size_t number = 0;
  ForEachChild(*stmt, [&](const Stmt&) { ++number; });
  MYCC_CHECK(children.size() == number) << "a statement keeps its children's number";
  const std::shared_ptr<StmtNode> changed = stmt->Clone();
  auto next = children.begin();
  ForEachChild(*changed, [&](Stmt& child) { child = std::move(*next++); });
  return changed;
}

Stmt MapChildren(const Stmt& stmt, const std::function<Stmt(const Stmt&)>& map) {
  std::vector<Stmt> children;
  bool changed = false;
  ForEachChild(*stmt, [&](const Stmt& child) {
    children.push_back(map(child));
    changed |= children.back() != child;
  });
  return changed ? WithChildren(stmt, std::move(children)) : stmt;
}

void VisitStmts(const Stmt& root, const std::function<bool(const Stmt&)>& visit) {
  if (visit(root)) ForEachChild(*root, [&](const Stmt& child) { VisitStmts(child, visit); });
}

bool AnyStmt(const Stmt& root, const std::function<bool(const Stmt&)>& holds) {
  bool found = false;
  VisitStmts(root, [&](const Stmt& stmt) {
    found = found || holds(stmt);
    return !found;
  });
  return found;
}

bool Contains(const Stmt& root, StmtKind kind) {
  return AnyStmt(root, [kind](const Stmt& stmt) { return stmt->kind == kind; });
}

std::vector<Stmt> PathTo(const Stmt& root, const std::function<bool(const Stmt&)>& holds) {
  constexpr size_t kUsualDepth = 16;
  std::vector<Stmt> path;
  path.reserve(kUsualDepth);
  // Appends the path from the first such statement up to `stmt`.
  const auto find_up = [&](const Stmt& stmt, const auto& self) -> bool {
    bool found = holds(stmt);
    if (!found) ForEachChild(*stmt, [&](const Stmt& child) { found = found || self(child, self); });
    if (found) path.push_back(stmt);
    return found;
  };
  find_up(root, find_up);
  std::ranges::reverse(path);
  return path;
}

Stmt RewriteStmts(const Stmt& root, const std::function<Stmt(const Stmt&)>& rewrite) {
  Stmt current = MapChildren(root, [&rewrite](const Stmt& child) { return RewriteStmts(child, rewrite); });
  Stmt replacement = rewrite(current);
  return replacement ? replacement : current;
}

Stmt ReplaceStmt(const Stmt& root, const StmtNode* old, const Stmt& replacement) {
  if (root.get() == old) return replacement;
  return MapChildren(root, [&](const Stmt& child) { return ReplaceStmt(child, old, replacement); });
}

}  // namespace mycc
