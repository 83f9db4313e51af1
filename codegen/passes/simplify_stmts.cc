// Cleans up after the other passes:
//
//   if true: A                      A
//   for i in 1: A(i)           ->   A(0)         but for a launch's only block of several statements
//   alloc t (never read): t = ..    (nothing)
//
// It also brings every expression into canonical form.
#include <algorithm>

#include "codegen/expr/affine.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/threads.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

// Simplify makes new nodes; an expression that is canonical already keeps its pointer.
Expr SimplifiedOrSame(const Expr& expr) {
  const Expr simplified = Simplify(expr);
  return StructurallyEqual(simplified, expr) ? expr : simplified;
}

bool ReadsBuffer(const Stmt& root, const Buffer& buffer) {
  return AnyStmt(root, [&](const Stmt& stmt) {
    const StmtKind kind = stmt->kind;
    bool reads = (kind == StmtKind::kCombine || kind == StmtKind::kBlock || kind == StmtKind::kMma) &&
                 Accesses(stmt, buffer);
    ForEachExpr(stmt, [&](const Expr& expr) { reads = reads || Loads(expr, buffer); });
    return reads;
  });
}

Stmt SimplifySeq(const Seq& seq) {
  std::vector<Stmt> kept = seq.stmts;
  return std::erase_if(kept, IsEmpty) > 0 ? MakeSeq(std::move(kept)) : nullptr;
}

bool HasBuffersOfBlock(const Stmt& root) {
  if (root->kind == StmtKind::kAlloc) return true;
  return !IsThreadLoop(root) && std::ranges::any_of(Children(root), HasBuffersOfBlock);
}

// The only grid loop around buffers that belong to thread blocks stays, even if it has one iteration.
bool IsBlockOfBuffers(const Stmt& stmt) {
  return IsGridLoop(stmt) && ConstExtent(As<For>(stmt)) == 1 && !IsGridLoop(As<For>(stmt).body) &&
         HasBuffersOfBlock(stmt);
}

Stmt FirstIteration(const For& loop) {
  return SubstituteSimplified(loop.body, {{loop.var.get(), IntConst(0)}});
}

// The loop for its only thread block, which shares its iteration with no other.
Stmt BlockAlone(const For& loop) {
  const bool is_shared = loop.marks.persistent_blocks != 0 || loop.marks.pingpong != 1;
  const Stmt inside = FirstIteration(loop);
  if (inside == loop.body && !is_shared) return nullptr;
  return Changed(loop, [&](For* alone) {
    alone->body = inside;
    alone->marks.persistent_blocks = 0;
    alone->marks.stream_k = {};
    alone->marks.pingpong = 1;
  });
}

// Marks of a loop over blocks that are the whole launch's.
bool HasMarksOfLaunch(const For& loop) {
  return loop.marks.cluster_reduce_blocks != 0 || loop.marks.min_blocks_per_sm != 0;
}

// The loop over blocks, with the body and the launch's marks of the one inside, which has one iteration.
Stmt JoinedBlocks(const For& loop, const For& inside) {
  return Changed(loop, [&](For* joined) {
    LoopMarks& marks = joined->marks;
    joined->body = FirstIteration(inside);
    marks.cluster_reduce_blocks = std::max(marks.cluster_reduce_blocks, inside.marks.cluster_reduce_blocks);
    marks.min_blocks_per_sm = std::max(marks.min_blocks_per_sm, inside.marks.min_blocks_per_sm);
  });
}

Stmt SimplifyFor(const Stmt& stmt) {
  const For& loop = As<For>(stmt);
  const auto extent = ConstExtent(loop);
  if (IsEmpty(loop.body) || extent == 0) return MakeSeq({});
  if (IsBlockOfBuffers(stmt)) return BlockAlone(loop);
  // A marked loop stays, because later passes look for it.
  const bool is_marked = HasMarksOfLaunch(loop) || !loop.marks.instruction.empty() ||
                         loop.marks.pipeline.kind != PipelineKind::kNone;
  const bool stays = extent != 1 || is_marked;
  if (stays && IsGridLoop(stmt) && IsGridLoop(loop.body)) {
    const For& inside = As<For>(loop.body);
    if (ConstExtent(inside) == 1 && (IsBlockOfBuffers(loop.body) || HasMarksOfLaunch(inside)))
      return JoinedBlocks(loop, inside);
  }
  if (stays) return nullptr;
  return FirstIteration(loop);
}

Stmt SimplifyIf(const If& branch) {
  int64_t value = 0;
  if (IsConstInt(branch.condition, &value)) {
    if (value != 0) return branch.then;
    return branch.otherwise ? branch.otherwise : MakeSeq({});
  }
  const bool no_else = !branch.otherwise || IsEmpty(branch.otherwise);
  if (IsEmpty(branch.then)) {
    return no_else ? MakeSeq({})
                   : std::make_shared<If>(MakeUnary(Op::kNot, branch.condition), branch.otherwise);
  }
  return no_else && branch.otherwise ? std::make_shared<If>(branch.condition, branch.then) : nullptr;
}

Stmt SimplifyAlloc(const Alloc& alloc) {
  if (IsEmpty(alloc.body)) return alloc.body;
  if (ReadsBuffer(alloc.body, alloc.buffer)) return nullptr;
  return CleanStmts(RewriteEach<Store>(
      alloc.body, [&](const Store& store) { return store.buffer == alloc.buffer ? MakeSeq({}) : nullptr; }));
}

}  // namespace

Stmt CleanStmts(const Stmt& body) {
  return RewriteStmts(body, [](const Stmt& stmt) -> Stmt {
    switch (stmt->kind) {
      case StmtKind::kSeq: return SimplifySeq(As<Seq>(stmt));
      case StmtKind::kFor: return SimplifyFor(stmt);
      case StmtKind::kIf: return SimplifyIf(As<If>(stmt));
      case StmtKind::kAlloc: return SimplifyAlloc(As<Alloc>(stmt));
      default: return nullptr;
    }
  });
}

Stmt SimplifyStmts(const Stmt& body) { return CleanStmts(MapAllExprs(body, SimplifiedOrSame)); }

}  // namespace mycc
