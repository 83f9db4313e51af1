#include "codegen/ir/visit.h"

#include <utility>

#include "base/check.h"
#include "codegen/ir/pipeline_stmts.h"

namespace mycc {

std::vector<Stmt> Children(const Stmt& stmt) {
  switch (stmt->kind) {
    case StmtKind::kSeq: return As<Seq>(stmt).stmts;
    case StmtKind::kFor: return {As<For>(stmt).body};
    case StmtKind::kIf: {
      const If& branch = As<If>(stmt);
      if (branch.otherwise) return {branch.then, branch.otherwise};
      return {branch.then};
    }
    case StmtKind::kLet: return {As<Let>(stmt).body};
    case StmtKind::kAlloc: return {As<Alloc>(stmt).body};
    case StmtKind::kCopy: return {As<Copy>(stmt).body};
    case StmtKind::kRoles: {
      std::vector<Stmt> bodies;
      for (const Roles::Role& role : As<Roles>(stmt).roles) bodies.push_back(role.body);
      return bodies;
    }
    default: return {};
  }
}

Stmt WithChildren(const Stmt& stmt, std::vector<Stmt> children) {
  switch (stmt->kind) {
    case StmtKind::kSeq: return MakeSeq(std::move(children));
    case StmtKind::kFor: {
      MYCC_CHECK(children.size() == 1) << "a loop has one body";
      const For& loop = As<For>(stmt);
      return std::make_shared<For>(loop.var, loop.extent, loop.loop_kind, std::move(children[0]), loop.marks);
    }
    case StmtKind::kIf: {
      const If& branch = As<If>(stmt);
      MYCC_CHECK(children.size() == (branch.otherwise ? 2u : 1u)) << "an if keeps its number of arms";
      return std::make_shared<If>(branch.condition, std::move(children[0]),
                                  children.size() == 2 ? std::move(children[1]) : nullptr);
    }
    case StmtKind::kLet:
      MYCC_CHECK(children.size() == 1) << "a let has one body";
      return std::make_shared<Let>(As<Let>(stmt).var, As<Let>(stmt).value, std::move(children[0]));
    case StmtKind::kAlloc:
      MYCC_CHECK(children.size() == 1) << "an alloc has one body";
      return std::make_shared<Alloc>(As<Alloc>(stmt).buffer, std::move(children[0]));
    case StmtKind::kCopy:
      MYCC_CHECK(children.size() == 1) << "a copy has one body";
      return std::make_shared<Copy>(std::move(children[0]), As<Copy>(stmt).engine, As<Copy>(stmt).barrier,
                                    As<Copy>(stmt).cluster);
    case StmtKind::kRoles: {
      std::vector<Roles::Role> roles = As<Roles>(stmt).roles;
      MYCC_CHECK(children.size() == roles.size()) << "roles keep their number";
      for (size_t i = 0; i < roles.size(); ++i) roles[i].body = std::move(children[i]);
      return std::make_shared<Roles>(std::move(roles), As<Roles>(stmt).barrier_counts);
    }
    default: MYCC_CHECK(children.empty()) << "this statement has no children"; return stmt;
  }
}

Stmt MapChildren(const Stmt& stmt, const std::function<Stmt(const Stmt&)>& map) {
  switch (stmt->kind) {
    case StmtKind::kSeq: {
      const std::vector<Stmt>& parts = As<Seq>(stmt).stmts;
      std::vector<Stmt> changed;
      for (size_t i = 0; i < parts.size(); ++i) {
        Stmt part = map(parts[i]);
        if (part == parts[i]) continue;
        if (changed.empty()) changed = parts;
        changed[i] = std::move(part);
      }
      return changed.empty() ? stmt : MakeSeq(std::move(changed));
    }
    case StmtKind::kFor: {
      const For& loop = As<For>(stmt);
      Stmt body = map(loop.body);
      if (body == loop.body) return stmt;
      return std::make_shared<For>(loop.var, loop.extent, loop.loop_kind, std::move(body), loop.marks);
    }
    case StmtKind::kAlloc: {
      Stmt body = map(As<Alloc>(stmt).body);
      if (body == As<Alloc>(stmt).body) return stmt;
      return std::make_shared<Alloc>(As<Alloc>(stmt).buffer, std::move(body));
    }
    case StmtKind::kIf:
    case StmtKind::kLet:
    case StmtKind::kCopy:
    case StmtKind::kRoles: {
      std::vector<Stmt> children = Children(stmt);
      bool changed = false;
      for (Stmt& child : children) {
        Stmt mapped = map(child);
        changed |= mapped != child;
        child = std::move(mapped);
      }
      return changed ? WithChildren(stmt, std::move(children)) : stmt;
    }
    default: return stmt;
  }
}

void VisitStmts(const Stmt& root, const std::function<bool(const Stmt&)>& visit) {
  if (!visit(root)) return;
  switch (root->kind) {
    case StmtKind::kSeq:
      for (const Stmt& part : As<Seq>(root).stmts) VisitStmts(part, visit);
      return;
    case StmtKind::kFor: return VisitStmts(As<For>(root).body, visit);
    case StmtKind::kLet: return VisitStmts(As<Let>(root).body, visit);
    case StmtKind::kAlloc: return VisitStmts(As<Alloc>(root).body, visit);
    case StmtKind::kCopy: return VisitStmts(As<Copy>(root).body, visit);
    case StmtKind::kIf:
      VisitStmts(As<If>(root).then, visit);
      if (As<If>(root).otherwise) VisitStmts(As<If>(root).otherwise, visit);
      return;
    case StmtKind::kRoles:
      for (const Roles::Role& role : As<Roles>(root).roles) VisitStmts(role.body, visit);
      return;
    default: return;
  }
}

bool Contains(const Stmt& root, StmtKind kind) {
  bool found = false;
  VisitStmts(root, [&](const Stmt& stmt) {
    found |= stmt->kind == kind;
    return !found;
  });
  return found;
}

Stmt RewriteStmts(const Stmt& root, const std::function<Stmt(const Stmt&)>& rewrite) {
  Stmt current = MapChildren(root, [&rewrite](const Stmt& child) { return RewriteStmts(child, rewrite); });
  Stmt replacement = rewrite(current);
  return replacement ? replacement : current;
}

}  // namespace mycc
