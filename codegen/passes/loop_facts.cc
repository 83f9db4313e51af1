// Pattern matches on loops and their bodies; the emitter has special code for each pattern.
#include "codegen/passes/loop_facts.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "codegen/expr/affine.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/stmt_facts.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

// Loops over a register tile are unrolled up to this extent even without an unroll mark, because registers
// have no addresses.
constexpr int64_t kMaxTileUnroll = 64;

struct BufferUse {
  bool written = false;
  bool own = false;  // allocated inside the loop: each lane has its own
  std::vector<std::vector<Expr>> accesses;
};
using BufferUses = std::unordered_map<const BufferNode*, BufferUse>;

// False when the loop contains a statement that lanes cannot execute.
bool CollectLaneUses(const Stmt& body, BufferUses* uses) {
  bool possible = true;
  VisitStmts(body, [&](const Stmt& stmt) {
    ForEachLoad(stmt,
                [&](const ExprNode& load) { (*uses)[load.buffer.get()].accesses.push_back(load.args); });
    switch (stmt->kind) {
      case StmtKind::kAlloc: (*uses)[As<Alloc>(stmt).buffer.get()].own = true; break;
      case StmtKind::kStore: {
        BufferUse& use = (*uses)[As<Store>(stmt).buffer.get()];
        use.written = true;
        use.accesses.push_back(As<Store>(stmt).indices);
        break;
      }
      case StmtKind::kFor: {
        // Loops whose extent differs between lanes are not widened.
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

// Whether all indices are coefficient * var + rest, with the same coefficient (not 0) and the same rest,
// which is constant in the loop.
bool SeparateLanes(const std::vector<Expr>& indices, const VarNode* var, const VarSet& inner) {
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

// In one dimension, or in the flat position: lanes may continue across the ends of rows.
bool SeparatesLanes(const BufferNode& buffer, const BufferUse& use, const VarNode* var, const VarSet& inner) {
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
  if (!CollectLaneUses(loop.body, &uses)) return false;
  const auto inner = LoopVarsUnder(loop.body);
  return std::all_of(uses.begin(), uses.end(), [&](const auto& entry) {
    const BufferUse& use = entry.second;
    return !use.written || use.own || SeparatesLanes(*entry.first, use, loop.var.get(), inner);
  });
}

const Store* LaneReductionOf(const For& loop) {
  const Store* store = DynAs<Store>(loop.body);
  if (store == nullptr || ReductionOf(*store) == ReduceOp::kNone) return nullptr;
  for (const Expr& index : store->indices) {
    if (UsesVar(index, loop.var.get()) || HasLoad(index)) return nullptr;
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
    indexes |= buffer.scope == Scope::kAccumulator && UsesVar(indices, loop.var.get());
  };
  VisitStmts(loop.body, [&](const Stmt& stmt) {
    ForEachLoad(stmt, [&](const ExprNode& load) { check(*load.buffer, load.args); });
    if (const Store* store = DynAs<Store>(stmt)) check(*store->buffer, store->indices);
    if (const Mma* mma = DynAs<Mma>(stmt)) check(*mma->acc.buffer, mma->acc.indices);
    return !indexes;
  });
  return indexes;
}

bool IsUnrolled(const For& loop) {
  const auto extent = ConstExtent(loop);
  return extent &&
         (loop.loop_kind == LoopKind::kUnroll || (*extent <= kMaxTileUnroll && IndexesAccumulator(loop)));
}

bool StoresShuffled(const For& loop) {
  const LaneForm form = loop.marks.form;
  return form == LaneForm::kReduces || form == LaneForm::kInterleaves || form == LaneForm::kTurnsGroups;
}

bool IsForTeam(const For& loop, bool in_team) {
  return loop.loop_kind == LoopKind::kParallel && !in_team && ConstExtent(loop).value_or(0) > 1;
}

namespace {

// The flat position of an in-bounds access if it is linear in these variables; else nullopt.
std::optional<Linear> PlaceBy(const BufferNode& buffer, const std::vector<Expr>& indices,
                              const std::vector<const VarNode*>& vars) {
  for (size_t d = 0; d < indices.size(); ++d) {
    const auto range = RangeOf(indices[d]);
    if (!range || range->min < 0 || range->max >= buffer.shape[d] || HasLoad(indices[d])) return std::nullopt;
  }
  Linear flat = ToLinear(FlatIndex(buffer, indices));
  const bool linear = std::all_of(flat.terms.begin(), flat.terms.end(), [&](const auto& term) {
    return term.first->op == Op::kVar || std::none_of(vars.begin(), vars.end(), [&](const VarNode* var) {
             return UsesVar(term.first, var);
           });
  });
  return linear ? std::optional(std::move(flat)) : std::nullopt;
}

bool IsCrossRead(const ExprNode& load, const VarNode* unrolled, const VarNode* lane) {
  const std::optional<Linear> place = PlaceBy(*load.buffer, load.args, {unrolled, lane});
  if (!place) return false;
  const int64_t stride = place->CoefficientOf(lane);
  return place->CoefficientOf(unrolled) == 1 && stride != 0 && stride != 1;
}

// The only store of an unrolled loop around a vector loop, if lanes may run concurrently and the store's
// buffer is not read; null for other loops.
const Store* StoreOfUnrolledLanes(const For& loop) {
  const For* lanes = DynAs<For>(loop.body);
  if (loop.loop_kind != LoopKind::kUnroll || lanes == nullptr || lanes->loop_kind != LoopKind::kVector ||
      !ConstExtent(loop) || !ConstExtent(*lanes)) {
    return nullptr;
  }
  const Store* store = DynAs<Store>(lanes->body);
  if (store == nullptr || LaneReductionOf(*lanes) != nullptr || !CanWiden(*lanes)) return nullptr;
  bool apart = true;
  Visit(store->value, [&](const ExprNode& e) { apart &= e.op != Op::kLoad || e.buffer != store->buffer; });
  return apart ? store : nullptr;
}

}  // namespace

std::optional<CrossReads> CrossReadsOf(const For& loop) {
  const Store* store = StoreOfUnrolledLanes(loop);
  if (store == nullptr) return std::nullopt;
  CrossReads cross{loop.var.get(), DynAs<For>(loop.body), {}};
  Visit(store->value, [&](const ExprNode& e) {
    if (e.op == Op::kLoad && IsCrossRead(e, cross.unrolled, cross.lanes->var.get()))
      cross.loads.push_back(&e);
  });
  return cross.loads.empty() ? std::nullopt : std::optional(cross);
}

std::optional<InterleavedStore> InterleavedStoreOf(const For& loop) {
  const Store* store = StoreOfUnrolledLanes(loop);
  if (store == nullptr || store->buffer->scope == Scope::kAccumulator) return std::nullopt;
  const For* lanes = DynAs<For>(loop.body);
  const int64_t group = *ConstExtent(loop);
  const auto place = PlaceBy(*store->buffer, store->indices, {loop.var.get(), lanes->var.get()});
  const bool interleaves = (group == 2 || group == 4) && place && place->CoefficientOf(loop.var.get()) == 1 &&
                           place->CoefficientOf(lanes->var.get()) == group;
  if (!interleaves) return std::nullopt;
  return InterleavedStore{loop.var.get(), lanes, store, static_cast<int>(group)};
}

std::optional<TurnedGroups> TurnedGroupsOf(const For& loop) {
  const For* inner = DynAs<For>(loop.body);
  if (loop.loop_kind != LoopKind::kUnroll || inner == nullptr || !ConstExtent(loop)) return std::nullopt;
  const std::optional<InterleavedStore> groups = InterleavedStoreOf(*inner);
  if (!groups || groups->store->value->op != Op::kLoad) return std::nullopt;
  const ExprNode& load = *groups->store->value;
  const Store& store = *groups->store;
  const VarNode* u = loop.var.get();
  const auto from = PlaceBy(*load.buffer, load.args, {u, groups->unrolled, groups->lanes->var.get()});
  const auto to = PlaceBy(*store.buffer, store.indices, {u});
  const bool turns = from && to && load.dtype == store.buffer->dtype && DTypeBytes(load.dtype) <= 2 &&
                     from->CoefficientOf(u) == groups->group && from->CoefficientOf(groups->unrolled) == 1 &&
                     from->CoefficientOf(groups->lanes->var.get()) != 0;
  return turns ? std::optional(TurnedGroups{u, *groups, &load}) : std::nullopt;
}

}  // namespace mycc
