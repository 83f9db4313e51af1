#include "codegen/passes/stmt_facts.h"

#include <algorithm>

#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/schedule/tree.h"

namespace mycc {

bool IsEmpty(const Stmt& stmt) { return stmt->kind == StmtKind::kSeq && As<Seq>(stmt).stmts.empty(); }

bool RunsChildrenOnce(const Stmt& stmt) {
  return stmt->kind == StmtKind::kSeq || stmt->kind == StmtKind::kAlloc || stmt->kind == StmtKind::kLet;
}

const BufferNode* WrittenBy(const Stmt& stmt) {
  if (const Store* store = DynAs<Store>(stmt)) return store->buffer.get();
  if (const Combine* combine = DynAs<Combine>(stmt)) return combine->buffer.get();
  if (const Mma* mma = DynAs<Mma>(stmt)) return mma->acc.buffer.get();
  return nullptr;
}

int64_t CountLeaves(const Stmt& stmt) {
  int64_t leaves = 0;
  VisitStmts(stmt, [&](const Stmt& s) {
    leaves += WrittenBy(s) != nullptr;
    return true;
  });
  return leaves;
}

BufferSet WrittenUnder(const Stmt& root) {
  BufferSet written;
  VisitStmts(root, [&](const Stmt& stmt) {
    ForEachWritten(stmt, [&](const BufferNode* buffer) { written.insert(buffer); });
    return true;
  });
  return written;
}

BufferSet LoadedUnder(const Stmt& root) {
  BufferSet loaded;
  VisitStmts(root, [&](const Stmt& stmt) {
    ForEachLoad(stmt, [&](const ExprNode& load) { loaded.insert(load.buffer.get()); });
    return true;
  });
  return loaded;
}

bool Intersect(const BufferSet& a, const BufferSet& b) {
  return std::ranges::any_of(a, [&](const BufferNode* buffer) { return b.contains(buffer); });
}

ReduceOp ReductionOf(const Store& store) {
  const Expr& value = store.value;
  if (!IsBinary(value->op) || value->args[0]->op != Op::kLoad || value->args[0]->buffer != store.buffer ||
      !StructurallyEqual(value->args[0]->args, store.indices))
    return ReduceOp::kNone;
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin}) {
    if (value->op == CombinerOf(op)) return op;
  }
  return ReduceOp::kNone;
}

bool IsUpdate(const Store& store) { return Loads(store.value, store.buffer); }

VarSet LoopVarsInCopies(const Stmt& body) {
  VarSet vars;
  VisitEach<Copy>(body, [&](const Copy& copy) { vars.merge(LoopVarsUnder(copy.body)); });
  return vars;
}

std::optional<int64_t> ConstExtent(const For& loop) {
  int64_t extent = 0;
  if (!IsConstInt(loop.extent, &extent)) return std::nullopt;
  return extent;
}

bool IsForTeam(const For& loop, bool in_team) {
  return loop.loop_kind == LoopKind::kParallel && !in_team && ConstExtent(loop).value_or(0) > 1;
}

bool StoresShuffled(const For& loop) {
  const LaneForm form = loop.marks.form;
  return form == LaneForm::kReduces || form == LaneForm::kInterleaves || form == LaneForm::kTurnsGroups;
}

}  // namespace mycc
