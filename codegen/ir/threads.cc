#include "codegen/ir/threads.h"

#include <algorithm>

#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/visit.h"

namespace mycc {
namespace {

constexpr int64_t kWarpgroup = 128;

}  // namespace

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
  VisitStmts(stmt, [&](const Stmt& s) {
    const Mma* mma = DynAs<Mma>(s);
    if (mma != nullptr && mma->instruction.starts_with("wgmma.")) groups = std::max(groups, mma->warps.rows);
    return true;
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
      default: one = false; return false;
    }
  });
  return one;
}

int64_t RoleThreads(const Stmt& role) {
  if (IsForOneThread(role)) return kWarpgroup;
  return (ThreadsUnder(role) + kWarpgroup - 1) / kWarpgroup * kWarpgroup;
}

}  // namespace mycc
