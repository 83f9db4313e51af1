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
template <typename VisitFn>
void ForEachChild(const StmtNode& node, const VisitFn& visit) {
  switch (node.kind) {
    case StmtKind::kSeq:
      for (const Stmt& part : static_cast<const Seq&>(node).stmts) visit(part);
      return;
    case StmtKind::kIf:
      visit(static_cast<const If&>(node).then);
      if (static_cast<const If&>(node).otherwise) visit(static_cast<const If&>(node).otherwise);
      return;
    case StmtKind::kRoles:
      for (const Roles::Role& role : static_cast<const Roles&>(node).roles) visit(role.body);
      return;
    case StmtKind::kFor: return visit(static_cast<const For&>(node).body);
    case StmtKind::kLet: return visit(static_cast<const Let&>(node).body);
    case StmtKind::kAlloc: return visit(static_cast<const Alloc&>(node).body);
    case StmtKind::kLaunch: return visit(static_cast<const Launch&>(node).body);
    case StmtKind::kCopy: return visit(static_cast<const Copy&>(node).body);
    case StmtKind::kVectors: return visit(static_cast<const Vectors&>(node).loop);
    case StmtKind::kBypass: return visit(static_cast<const Bypass&>(node).body);
    case StmtKind::kTileMove: return visit(static_cast<const TileMove&>(node).nest);
    case StmtKind::kTileRegion:
      visit(static_cast<const TileRegion&>(node).begin);
      visit(static_cast<const TileRegion&>(node).products);
      return visit(static_cast<const TileRegion&>(node).end);
    default: return;
  }
}

// The statement, whose children were mapped to `children`, of the same number.
template <typename T>
Stmt WithChild(const Stmt& stmt, Stmt T::*child, std::vector<Stmt> children) {
  return Changed(As<T>(stmt), [&](T* changed) { changed->*child = std::move(children[0]); });
}

}  // namespace

std::vector<Stmt> Children(const Stmt& stmt) {
  std::vector<Stmt> children;
  ForEachChild(*stmt, [&](const Stmt& child) { children.push_back(child); });
  return children;
}

Stmt WithChildren(const Stmt& stmt, std::vector<Stmt> children) {
  size_t number = 0;
  ForEachChild(*stmt, [&](const Stmt&) { ++number; });
  MYCC_CHECK(children.size() == number || stmt->kind == StmtKind::kSeq)
      << "a statement keeps its children's number";
  switch (stmt->kind) {
    case StmtKind::kSeq: return MakeSeq(std::move(children));
    case StmtKind::kIf:
      return std::make_shared<If>(As<If>(stmt).condition, std::move(children[0]),
                                  number == 2 ? std::move(children[1]) : nullptr);
    case StmtKind::kRoles:
      return Changed(As<Roles>(stmt), [&](Roles* roles) {
        for (size_t i = 0; i < number; ++i) roles->roles[i].body = std::move(children[i]);
      });
    case StmtKind::kFor: return WithChild(stmt, &For::body, std::move(children));
    case StmtKind::kLet: return WithChild(stmt, &Let::body, std::move(children));
    case StmtKind::kAlloc: return WithChild(stmt, &Alloc::body, std::move(children));
    case StmtKind::kLaunch: return WithChild(stmt, &Launch::body, std::move(children));
    case StmtKind::kCopy: return WithChild(stmt, &Copy::body, std::move(children));
    case StmtKind::kVectors: return WithChild(stmt, &Vectors::loop, std::move(children));
    case StmtKind::kBypass: return WithChild(stmt, &Bypass::body, std::move(children));
    case StmtKind::kTileMove: return WithChild(stmt, &TileMove::nest, std::move(children));
    case StmtKind::kTileRegion:
      return Changed(As<TileRegion>(stmt), [&](TileRegion* region) {
        region->begin = std::move(children[0]);
        region->products = std::move(children[1]);
        region->end = std::move(children[2]);
      });
    default: return stmt;
  }
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
    const auto find = [&](const Stmt& child) { return self(child, self); };
    const auto find_in = [&] {
      switch (stmt->kind) {  // the usual kinds without a copy of their children
        case StmtKind::kSeq: return std::any_of(As<Seq>(stmt).stmts.begin(), As<Seq>(stmt).stmts.end(), find);
        case StmtKind::kFor: return find(As<For>(stmt).body);
        case StmtKind::kAlloc: return find(As<Alloc>(stmt).body);
        default: {
          const std::vector<Stmt> children = Children(stmt);
          return std::any_of(children.begin(), children.end(), find);
        }
      }
    };
    const bool found = holds(stmt) || find_in();
    if (found) path.push_back(stmt);
    return found;
  };
  find_up(root, find_up);
  std::reverse(path.begin(), path.end());
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
