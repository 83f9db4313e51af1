// Lowered kernels as one function that the interpreter can run: packed and workspace buffers allocated around
// both bodies, those of one thread in each iteration of the parallel loops.
#pragma once

#include <memory>
#include <vector>

#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/lower.h"

namespace mycc {

inline Stmt WithBuffersOfThreads(const Stmt& stmt, const std::vector<WorkspaceBuffer>& workspace) {
  const auto inside = [&](const Stmt& child) { return WithBuffersOfThreads(child, workspace); };
  const auto is_parallel = [](const Stmt& s) {
    return s->kind == StmtKind::kFor && As<For>(s).loop_kind == LoopKind::kParallel;
  };
  if (!is_parallel(stmt) || is_parallel(As<For>(stmt).body)) return MapChildren(stmt, inside);
  Stmt body = As<For>(stmt).body;
  for (const WorkspaceBuffer& buffer : workspace) {
    bool used = false;
    VisitStmts(body, [&](const Stmt& s) {
      ForEachBuffer(s, [&](const Buffer& b) { used |= b == buffer.buffer; });
      return !used;
    });
    if (buffer.per_thread && used) body = std::make_shared<Alloc>(buffer.buffer, body);
  }
  return WithChildren(stmt, {body});
}

inline Function WholeFunction(const LoweredFunction& lowered) {
  Function whole = lowered.kernel;
  whole.body = MakeSeq({lowered.pack.body, lowered.kernel.body});
  for (const PackedBuffer& packed : lowered.packed)
    whole.body = std::make_shared<Alloc>(packed.buffer, whole.body);
  whole.body = WithBuffersOfThreads(whole.body, lowered.workspace);
  for (const WorkspaceBuffer& buffer : lowered.workspace) {
    if (!buffer.per_thread) whole.body = std::make_shared<Alloc>(buffer.buffer, whole.body);
  }
  return whole;
}

}  // namespace mycc
