#include "codegen/ir/threads.h"

#include <algorithm>

#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/visit.h"

namespace mycc {

int64_t ThreadsUnder(const Stmt& stmt) {
  if (const Roles* roles = DynAs<Roles>(stmt)) {
    int64_t threads = 0;
    for (const Roles::Role& role : roles->roles) threads += RoleThreads(role.body);
    return threads;
  }
  int64_t threads = 1;
  if (const Mma* mma = DynAs<Mma>(stmt)) threads = mma->threads();
  for (const Stmt& child : Children(stmt)) threads = std::max(threads, ThreadsUnder(child));
  return IsThreadLoop(stmt) ? threads * As<For>(stmt).var->extent : threads;
}

int WarpgroupsUnder(const Stmt& stmt) {
  int groups = 0;
  VisitEach<Mma>(stmt, [&](const Mma& mma) {
    if (mma.of_warpgroups()) groups = std::max(groups, mma.warps.rows);
  });
  return groups;
}

bool IsForOneThread(const Stmt& role) {
  bool one = true;
  VisitStmts(role, [&](const Stmt& stmt) {
    switch (stmt->kind) {
      case StmtKind::kCopy: one &= As<Copy>(stmt).engine == CopyEngine::kBulk; return false;
      case StmtKind::kSeq:
      case StmtKind::kIf:
      case StmtKind::kLet:
      case StmtKind::kWait:
      case StmtKind::kArrive: return one;
      case StmtKind::kFor: one &= !IsThreadLoop(stmt); return one;
      // It counts in a register.
      case StmtKind::kAlloc: one &= As<Alloc>(stmt).buffer->scope == Scope::kLocal; return one;
      case StmtKind::kStore: one &= As<Store>(stmt).buffer->scope == Scope::kLocal; return one;
      default: one = false; return false;
    }
  });
  return one;
}

int64_t RoleThreads(const Stmt& role) {
  if (IsForOneThread(role)) return kThreadsOfWarpgroup;
  return (ThreadsUnder(role) + kThreadsOfWarpgroup - 1) / kThreadsOfWarpgroup * kThreadsOfWarpgroup;
}

}  // namespace mycc
