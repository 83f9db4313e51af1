#include "codegen/passes/stmt_facts.h"

#include <algorithm>

#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/threads.h"
#include "codegen/ir/visit.h"
#include "codegen/schedule/tree.h"

namespace mycc {

bool IsEmpty(const Stmt& stmt) { return stmt->kind == StmtKind::kSeq && As<Seq>(stmt).stmts.empty(); }

bool RunsChildrenOnce(const Stmt& stmt) {
  return stmt->kind == StmtKind::kSeq || stmt->kind == StmtKind::kAlloc || stmt->kind == StmtKind::kLet;
}

bool CanRunAsync(const Stmt& stmt) {
  const Mma* mma = DynAs<Mma>(stmt);
  return mma != nullptr && !mma->is_async && mma->row() != nullptr && mma->row()->is_async;
}

const BufferNode* WrittenBy(const Stmt& stmt) {
  if (const Store* store = DynAs<Store>(stmt)) return store->buffer.get();
  if (const Combine* combine = DynAs<Combine>(stmt)) return combine->buffer.get();
  if (const Mma* mma = DynAs<Mma>(stmt)) return mma->acc.buffer.get();
  return nullptr;
}

BufferSet WrittenUnder(const Stmt& root) {
  BufferSet written;
  ForEachStmt(root, [&](const Stmt& stmt) {
    ForEachWritten(stmt, [&](const BufferNode* buffer) { written.insert(buffer); });
  });
  return written;
}

BufferSet LoadedUnder(const Stmt& root) {
  BufferSet loaded;
  ForEachStmt(root, [&](const Stmt& stmt) {
    ForEachLoad(stmt, [&](const ExprNode& load) { loaded.insert(load.buffer.get()); });
  });
  return loaded;
}

bool Intersect(const BufferSet& a, const BufferSet& b) {
  return std::ranges::any_of(a, [&](const BufferNode* buffer) { return b.contains(buffer); });
}

StoreTargets TargetsOf(const Stmt& stmt, const std::function<bool(const BufferNode&)>& in_registers) {
  bool registers = false, memory = false, other = false;
  VisitStmts(stmt, [&](const Stmt& s) {
    if (const Store* store = DynAs<Store>(s)) {
      (in_registers(*store->buffer) ? registers : memory) = true;
    } else {
      const bool vector = s == stmt && IsLoopOfKind(s, LoopKind::kVector);
      other |= !vector && s->kind != StmtKind::kSeq && s->kind != StmtKind::kIf;
    }
    return !other;
  });
  if (other) return StoreTargets::kOther;
  if (registers && memory) return StoreTargets::kBoth;
  return registers ? StoreTargets::kRegisters : StoreTargets::kMemory;
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

// Thread loops come last, but before the innermost loop: neighbouring threads copy the neighbouring
// iterations of those loops.
std::optional<ThreadCopyNest> ThreadCopyNestOf(const Copy& copy) {
  ThreadCopyNest nest;
  nest.chunk = copy.chunk;
  Stmt inner;
  nest.loops = LoopsOfNest(copy.body, &inner);
  nest.elements = IterationsOf(nest.loops);
  nest.store = DynAs<Store>(inner);
  if (nest.store == nullptr || nest.loops.empty()) return std::nullopt;
  nest.load = nest.store->value;
  if (nest.load->op == Op::kSelect) {
    nest.condition = nest.load->args[0];
    nest.load = nest.load->args[1];
  }
  const auto lanes = nest.loops.end() - (nest.loops.back()->loop_kind != LoopKind::kUnroll ? 1 : 0);
  std::stable_partition(nest.loops.begin(), lanes,
                        [](const For* loop) { return loop->loop_kind != LoopKind::kThread; });
  return nest;
}

}  // namespace mycc
