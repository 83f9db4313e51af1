// Decides what a CPU executes for loops of lanes: vectors, vectors of partial results, transposed tiles, or
// one iteration after the other (LaneForm); how wide the vectors are, and how many are straight-line code.
// Loops over register tiles become unrolled ones.
//
//   unroll u in 16: vector v in 16:   ->   unroll u in 16 turning tiles: vector v in 16, 16 lanes:
//     y[u, v] = x[v, u]                      y[u, v] = x[v, u], turning x[v, u]
#include <algorithm>

#include "codegen/expr/affine.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/lanes.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

// A vector loop of up to this number of vectors is straight-line code; a longer one is a loop over a few
// vectors, or over one if its code is long.
constexpr int64_t kMaxStraight = 8;
constexpr int kVectorsInLoop = 4;
constexpr int kLongCode = 24;  // expressions and statements

// The widest number type that lanes compute with, without indices and their comparisons, which adapt to it.
int WidestBytes(const Expr& expr) {
  if (expr->op == Op::kVar) return 1;
  const int own = IsNarrowFloat(expr->dtype) ? 4 : DTypeBytes(expr->dtype);
  if (expr->op == Op::kLoad) return own;
  if (expr->op == Op::kConst) return IsFloat(expr->dtype) ? own : 1;
  int widest = expr->dtype == DType::kBool ? 1 : own;
  for (const Expr& arg : expr->args) {
    if (arg->dtype == DType::kI64 && !HasLoad(arg)) continue;
    widest = std::max(widest, WidestBytes(arg));
  }
  return widest;
}

int CodeOf(const For& loop) {
  int nodes = 0;
  ForEachStmt(loop.body, [&](const Stmt& stmt) {
    nodes += stmt->kind == StmtKind::kFor ? 1000 : 1;
    if (const Store* store = DynAs<Store>(stmt)) Visit(store->value, [&](const ExprNode&) { ++nodes; });
  });
  return nodes;
}

// A reduction into one element, s = s (op) value, is all that the loop contains.
bool ReducesLanes(const For& loop) {
  const Store* store = DynAs<Store>(loop.body);
  if (store == nullptr || ReductionOf(*store) == ReduceOp::kNone) return false;
  return !UsesVar(store->indices, loop.var.get()) && std::ranges::none_of(store->indices, HasLoad) &&
         !Loads(store->value->args[1], store->buffer);
}

// True when the loop's variable indexes a register tile.
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

// Whether a loop runs over a register tile. Such a loop is unrolled without a mark up to this extent, because
// registers have no addresses.
constexpr int64_t kMaxTileUnroll = 64;
bool IsOverTile(const For& loop) {
  return ConstExtent(loop).value_or(kMaxTileUnroll + 1) <= kMaxTileUnroll && IndexesAccumulator(loop);
}

// The kind of a loop that has no lanes. Only one with a constant extent is unrolled.
LoopKind KindOf(const For& loop, bool is_for_team) {
  if (!is_for_team && IsOverTile(loop)) return LoopKind::kUnroll;
  const bool runs_on = loop.loop_kind == LoopKind::kUnroll && !ConstExtent(loop);
  return runs_on ? LoopKind::kSerial : loop.loop_kind;
}

// The flat position of an in-bounds access if it is linear in these variables; else nullopt.
std::optional<Linear> PlaceBy(const BufferNode& buffer, const std::vector<Expr>& indices,
                              const VarSet& vars) {
  if (!IsInside(buffer, indices) || std::ranges::any_of(indices, HasLoad)) return std::nullopt;
  Linear flat = ToLinear(FlatIndex(buffer, indices));
  const bool linear = std::ranges::all_of(flat.terms, [&](const auto& term) {
    return term.first->op == Op::kVar || !UsesAnyOf(term.first, vars);
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
  if (store == nullptr || ReducesLanes(*lanes) || !CanWiden(*lanes)) return nullptr;
  return Loads(store->value, store->buffer) ? nullptr : store;
}

// The loads of the store that are contiguous along the unrolled loop, and strided along the lanes.
std::vector<Expr> ReadsAcrossLanes(const For& loop) {
  std::vector<Expr> across;
  const Store* store = StoreOfUnrolledLanes(loop);
  if (store == nullptr) return across;
  Visit(store->value, [&](const ExprNode& e) {
    if (e.op == Op::kLoad && IsCrossRead(e, loop.var.get(), As<For>(loop.body).var.get()))
      across.push_back(Load(e.buffer, e.args));
  });
  return across;
}

// y[v, e]: the stored elements are contiguous along the unrolled loop over e. Lanes are as far apart as its
// extent.
bool Interleaves(const For& loop) {
  const Store* store = StoreOfUnrolledLanes(loop);
  if (store == nullptr || store->buffer->scope == Scope::kAccumulator) return false;
  const VarNode* lane = As<For>(loop.body).var.get();
  const int64_t group = *ConstExtent(loop);
  const auto place = PlaceBy(*store->buffer, store->indices, {loop.var.get(), lane});
  return (group == 2 || group == 4) && place && place->CoefficientOf(loop.var.get()) == 1 &&
         place->CoefficientOf(lane) == group;
}

// y[u, v, e] = x[v, group * u + e]: an unrolled loop over u around an interleaved store of elements that are
// contiguous along u and e together.
bool TurnsGroups(const For& loop) {
  const For* groups = DynAs<For>(loop.body);
  if (loop.loop_kind != LoopKind::kUnroll || !ConstExtent(loop) || groups == nullptr || !Interleaves(*groups))
    return false;
  const For& lanes = As<For>(groups->body);
  const Store& store = As<Store>(lanes.body);
  const ExprNode& load = *store.value;
  if (load.op != Op::kLoad || load.dtype != store.buffer->dtype || DTypeBytes(load.dtype) > 2) return false;
  const VarNode *u = loop.var.get(), *e = groups->var.get(), *v = lanes.var.get();
  const auto from = PlaceBy(*load.buffer, load.args, {u, e, v});
  return from && PlaceBy(*store.buffer, store.indices, {u}) &&
         from->CoefficientOf(u) == *ConstExtent(*groups) && from->CoefficientOf(e) == 1 &&
         from->CoefficientOf(v) != 0;
}

LaneForm FormOf(const For& loop) {
  if (loop.loop_kind == LoopKind::kVector) {
    if (ReducesLanes(loop)) return LaneForm::kReduces;
    return CanWiden(loop) ? LaneForm::kPlain : LaneForm::kOneByOne;
  }
  if (TurnsGroups(loop)) return LaneForm::kTurnsGroups;
  if (Interleaves(loop)) return LaneForm::kInterleaves;
  return ReadsAcrossLanes(loop).empty() ? LaneForm::kPlain : LaneForm::kTurns;
}

Stmt WithTurned(const Stmt& lanes, const std::vector<Expr>& reads) {
  return RewriteEach<Store>(lanes, [&](const Store& store) {
    return Changed(store, [&](Store* changed) { changed->turned = reads; });
  });
}

// The groups of adjacent elements in a vector; `groups` is the loop over a group.
int LanesOfGroups(const For& groups, int vector_bytes) {
  const DType dtype = As<Store>(As<For>(groups.body).body).buffer->dtype;
  return vector_bytes / static_cast<int>(DTypeBytes(dtype) * *ConstExtent(groups));
}

int LanesOf(const For& loop, int vector_bytes) {
  int widest = 1;
  VisitEach<Store>(loop.body, [&](const Store& store) {
    widest = std::max({widest, WidestBytes(store.value),
                       store.buffer->dtype == DType::kBool ? 1 : DTypeBytes(store.buffer->dtype)});
  });
  return std::max(vector_bytes / widest, 1);
}

// The vectors, or single iterations, of each step of a loop; 0: straight-line code.
int VectorsOfStep(const For& loop, const LoopMarks& marks, LaneForm around) {
  const bool one_by_one = marks.form == LaneForm::kOneByOne;
  if (*ConstExtent(loop) / (one_by_one ? 1 : marks.lanes) <= kMaxStraight) return 0;
  if (around == LaneForm::kTurns || around == LaneForm::kTurnsGroups) return 0;
  const bool plain = marks.form == LaneForm::kPlain && around == LaneForm::kPlain;
  if (plain && IndexesAccumulator(loop)) return 0;
  return one_by_one || CodeOf(loop) > kLongCode ? 1 : kVectorsInLoop;
}

// The unrolled loop around lanes; `lanes` where it decides their number.
struct LanesAround {
  LaneForm form = LaneForm::kPlain;
  int lanes = 0;
};

// Whether a statement is in lanes, and in a loop of a team.
struct Enclosed {
  bool lanes = false, team = false;
};

Stmt WithForms(const Stmt& stmt, int vector_bytes, Enclosed within, const LanesAround& around = {}) {
  const For* loop = DynAs<For>(stmt);
  if (loop == nullptr || ConstExtent(*loop) == 0 || ConstExtent(*loop) == 1)
    return MapChildren(stmt, [&](const Stmt& child) { return WithForms(child, vector_bytes, within); });
  LoopMarks marks = loop->marks;
  const bool has_lanes = loop->loop_kind == LoopKind::kVector && !(within.lanes && IsOverTile(*loop));
  const bool is_for_team = !within.lanes && IsForTeam(*loop, within.team);
  const LoopKind kind = has_lanes ? LoopKind::kVector : KindOf(*loop, is_for_team);
  within.team |= is_for_team;
  LanesAround inner;
  if (has_lanes) {
    // Inside other lanes the loop is scalar code, except where a single one of those is left over.
    marks.form = FormOf(*loop);
    marks.lanes = around.lanes > 0 ? around.lanes : LanesOf(*loop, vector_bytes);
    marks.unroll_by = VectorsOfStep(*loop, marks, around.form);
    within.lanes |= marks.form != LaneForm::kOneByOne;
  } else if (around.form == LaneForm::kTurnsGroups) {
    inner = around;
  } else if (!within.lanes) {
    marks.form = inner.form = FormOf(*loop);
    if (marks.form == LaneForm::kTurnsGroups) inner.lanes = LanesOfGroups(As<For>(loop->body), vector_bytes);
  }
  const Stmt inside =
      MapChildren(stmt, [&](const Stmt& child) { return WithForms(child, vector_bytes, within, inner); });
  if (kind == loop->loop_kind && marks == loop->marks) return inside;
  return Changed(As<For>(inside), [&](For* changed) {
    changed->loop_kind = kind;
    changed->marks = marks;
    if (marks.form == LaneForm::kTurns) changed->body = WithTurned(changed->body, ReadsAcrossLanes(*loop));
  });
}

}  // namespace

Stmt ChooseLaneForms(const Stmt& body, const Target& target) {
  return WithForms(body, VectorBytes(target), {});
}

}  // namespace mycc
