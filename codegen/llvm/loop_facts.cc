#include "codegen/llvm/loop_facts.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "codegen/expr/affine.h"
#include "codegen/passes/copy_stmt.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

struct BufferUse {
  bool written = false;
  bool own = false;  // allocated inside: every lane has its own
  std::vector<std::vector<Expr>> accesses;
};
using BufferUses = std::unordered_map<const BufferNode*, BufferUse>;

// False when the loop holds a statement that lanes cannot run.
bool CollectUses(const Stmt& body, BufferUses* uses) {
  bool possible = true;
  VisitStmts(body, [&](const Stmt& stmt) {
    ForEachExpr(stmt, [&](const Expr& expr) {
      Visit(expr, [&](const ExprNode& e) {
        if (e.op == Op::kLoad) (*uses)[e.buffer.get()].accesses.push_back(e.args);
      });
    });
    switch (stmt->kind) {
      case StmtKind::kAlloc: (*uses)[As<Alloc>(stmt).buffer.get()].own = true; break;
      case StmtKind::kStore: {
        BufferUse& use = (*uses)[As<Store>(stmt).buffer.get()];
        use.written = true;
        use.accesses.push_back(As<Store>(stmt).indices);
        break;
      }
      case StmtKind::kFor: {
        // A loop whose length differs from lane to lane is not widened.
        possible &= ConstExtent(As<For>(stmt)).has_value();
        break;
      }
      case StmtKind::kSeq:
      case StmtKind::kIf: break;
      default: possible = false;
    }
    return possible;
  });
  return possible;
}

// All of the indices are coefficient * var + rest, with one coefficient that is not zero and one rest that
// stands still.
bool SeparateLanes(const std::vector<Expr>& indices, const VarNode* var,
                   const std::unordered_set<const VarNode*>& inner) {
  std::optional<LinearInVar> first;
  for (const Expr& index : indices) {
    const auto linear = SplitLinear(index, var);
    if (!linear || linear->coefficient == 0 || UsesAnyOf(linear->rest, inner) || HasLoad(linear->rest))
      return false;
    if (!first) {
      first = linear;
      continue;
    }
    if (linear->coefficient != first->coefficient ||
        !StructurallyEqual(Simplify(linear->rest), Simplify(first->rest)))
      return false;
  }
  return true;
}

// In one dimension, or in memory: lanes may run across the ends of rows.
bool SeparatesLanes(const BufferNode& buffer, const BufferUse& use, const VarNode* var,
                    const std::unordered_set<const VarNode*>& inner) {
  std::vector<Expr> indices(use.accesses.size());
  for (size_t d = 0; d < use.accesses.front().size(); ++d) {
    for (size_t i = 0; i < indices.size(); ++i) indices[i] = use.accesses[i][d];
    if (SeparateLanes(indices, var, inner)) return true;
  }
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = Simplify(FlatIndex(buffer, use.accesses[i]));
  return SeparateLanes(indices, var, inner);
}

}  // namespace

bool CanWiden(const For& loop) {
  BufferUses uses;
  if (!CollectUses(loop.body, &uses)) return false;
  const auto inner = LoopVarsUnder(loop.body);
  return std::all_of(uses.begin(), uses.end(), [&](const auto& entry) {
    const BufferUse& use = entry.second;
    return !use.written || use.own || SeparatesLanes(*entry.first, use, loop.var.get(), inner);
  });
}

const Store* LaneReductionOf(const For& loop) {
  const Store* store = DynAs<Store>(loop.body);
  if (store == nullptr || !IsBinary(store->value->op)) return nullptr;
  switch (store->value->op) {
    case Op::kAdd:
    case Op::kMul:
    case Op::kMin:
    case Op::kMax: break;
    default: return nullptr;
  }
  const Expr& running = store->value->args[0];
  if (running->op != Op::kLoad || running->buffer != store->buffer) return nullptr;
  for (size_t d = 0; d < store->indices.size(); ++d) {
    if (!StructurallyEqual(store->indices[d], running->args[d])) return nullptr;
    if (UsesVar(store->indices[d], loop.var.get()) || HasLoad(store->indices[d])) return nullptr;
  }
  bool reads_result = false;
  Visit(store->value->args[1],
        [&](const ExprNode& e) { reads_result |= e.op == Op::kLoad && e.buffer == store->buffer; });
  return reads_result ? nullptr : store;
}

std::vector<const Mma*> ProductsOfOneAccumulator(const Stmt& stmt) {
  std::vector<const Mma*> products;
  bool alone = true;
  VisitStmts(stmt, [&](const Stmt& s) {
    if (const Mma* mma = DynAs<Mma>(s)) {
      products.push_back(mma);
    } else if (const For* loop = DynAs<For>(s)) {
      alone &= loop->loop_kind == LoopKind::kSerial || loop->loop_kind == LoopKind::kUnroll;
    } else {
      alone &= s->kind == StmtKind::kSeq;
    }
    return alone;
  });
  if (!alone || products.empty()) return {};
  const Mma& first = *products.front();
  const auto inner = LoopVarsUnder(stmt);
  for (const Mma* mma : products) {
    if (mma->acc.buffer != first.acc.buffer || mma->m != first.m || mma->n != first.n ||
        mma->instruction != first.instruction)
      return {};
    for (size_t d = 0; d < mma->acc.indices.size(); ++d) {
      if (UsesAnyOf(mma->acc.indices[d], inner) ||
          !StructurallyEqual(mma->acc.indices[d], first.acc.indices[d]))
        return {};
    }
  }
  return products;
}

bool IndexesAccumulator(const For& loop) {
  bool indexes = false;
  const auto check = [&](const BufferNode& buffer, const std::vector<Expr>& indices) {
    if (buffer.scope != Scope::kAccumulator) return;
    indexes |= std::any_of(indices.begin(), indices.end(),
                           [&](const Expr& index) { return UsesVar(index, loop.var.get()); });
  };
  VisitStmts(loop.body, [&](const Stmt& stmt) {
    ForEachExpr(stmt, [&](const Expr& expr) {
      Visit(expr, [&](const ExprNode& e) {
        if (e.op == Op::kLoad) check(*e.buffer, e.args);
      });
    });
    if (const Store* store = DynAs<Store>(stmt)) check(*store->buffer, store->indices);
    if (const Mma* mma = DynAs<Mma>(stmt)) check(*mma->acc.buffer, mma->acc.indices);
    return !indexes;
  });
  return indexes;
}

namespace {

bool IsCrossRead(const ExprNode& load, const VarNode* unrolled, const VarNode* lane) {
  for (size_t d = 0; d < load.args.size(); ++d) {
    const auto range = RangeOf(load.args[d]);
    if (!range || range->min < 0 || range->max >= load.buffer->shape[d] || HasLoad(load.args[d]))
      return false;
  }
  const Linear flat = ToLinear(FlatIndex(*load.buffer, load.args));
  const bool linear = std::all_of(flat.terms.begin(), flat.terms.end(), [&](const auto& term) {
    return term.first->op == Op::kVar || (!UsesVar(term.first, unrolled) && !UsesVar(term.first, lane));
  });
  const int64_t stride = flat.CoefficientOf(lane);
  return linear && flat.CoefficientOf(unrolled) == 1 && stride != 0 && stride != 1;
}

}  // namespace

std::optional<CrossReads> CrossReadsOf(const For& loop) {
  const For* lanes = DynAs<For>(loop.body);
  if (loop.loop_kind != LoopKind::kUnroll || lanes == nullptr || lanes->loop_kind != LoopKind::kVector ||
      !ConstExtent(loop) || !ConstExtent(*lanes)) {
    return std::nullopt;
  }
  const Store* store = DynAs<Store>(lanes->body);
  if (store == nullptr || LaneReductionOf(*lanes) != nullptr || !CanWiden(*lanes)) return std::nullopt;
  CrossReads cross{loop.var.get(), lanes, {}};
  bool apart = true;
  Visit(store->value, [&](const ExprNode& e) {
    if (e.op != Op::kLoad) return;
    apart &= e.buffer != store->buffer;
    if (IsCrossRead(e, cross.unrolled, lanes->var.get())) cross.loads.push_back(&e);
  });
  if (!apart || cross.loads.empty()) return std::nullopt;
  return cross;
}

}  // namespace mycc
