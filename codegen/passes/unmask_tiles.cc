// Evaluates the masks of a tile in registers only where the tile crosses their edge (causal attention, the
// last keys of a length that is no multiple of a tile). A role's loop with products is cut in two: turns
// whose tiles are inside of all edges, and the other turns:
//
//   for j in n:                                    for j in inside:
//     thread a: for b:                       ->      thread a: for b: t[a,b] = u[a,b]
//       t[a,b] = select(j*64 + b <= i*128 + a,     for j.edge in n - inside:
//                       u[a,b], -inf)                the body as it was, in turn j.edge + inside
//                                                  where inside = min(n, max(0, (i*128 - 63) // 64 + 1))
//
// A mask that hides the first keys (a window) makes a third loop, before the two. So does a causal mask where
// keys run from the last to the first, and then there is no last loop. A nest outside of such loops gets two
// versions:
//
//   for j:                                         for j:
//     thread a: for b:                       ->      if j*64 + 63 <= i*128:
//       t[a,b] = select(j*64 + b <= i*128 + a,         thread a: for b: t[a,b] = u[a,b]
//                       u[a,b], -inf)                else: the nest as it was
//
// A new condition is a mask's own for the element of the tile where it holds last. It is the same in all
// threads of a block, so they all take the same version, and reach the barriers in it.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/conjunction.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

// Whether all threads of a block compute the same value, and may do so outside of the nest: registers are
// each thread's own, and an index that only the nest's guards keep inside of its tensor could leave it.
bool IsUniform(const Expr& expr) {
  return !AnyExpr(expr, [](const ExprNode& e) {
    return e.op == Op::kLoad && (e.buffer->scope != Scope::kGlobal || !IsInside(*e.buffer, e.args));
  });
}

// A condition under which the comparison holds for all values of `inner`; null when none is known.
Expr ForAll(const Expr& comparison, const VarSet& inner) {
  const Expr whole = MarginOf(comparison);
  if (whole == nullptr) return nullptr;
  std::optional<FreeAndRange> margin = SplitByVars(ToLinear(whole), inner);
  if (!margin) return nullptr;
  for (auto& [atom, coefficient] : margin->free.terms) {
    if (!IsUniform(atom)) return nullptr;
    atom = WithinSums(atom);
  }
  margin->free.constant += margin->range.min;
  return MakeBinary(Op::kLe, IntConst(0), FromLinear(margin->free));
}

bool WritesRegisters(const Stmt& stmt) {
  const BufferNode* written = WrittenBy(stmt);
  return written != nullptr && written->scope == Scope::kLocal;
}

// The masks of tiles in registers: conditions of selects, and of the statements that write registers. Each
// part of a mask's condition has a bound, a condition without the variables of the tile's own loops. Where
// the bound holds, the part holds for all elements of the tile.
class TileMasks {
 public:
  // All loops under `root` are a tile's own. `guards`: the conditions of statements are masks, too.
  TileMasks(const Stmt& root, bool guards) : root_(root), guards_(guards), inner_(LoopVarsUnder(root)) {
    VisitEach<Let>(root, [&](const Let& let) { inner_.insert(let.var.get()); });
    ForEachStmt(root, [&](const Stmt& stmt) {
      if (IsGuard(stmt)) Collect(As<If>(stmt).condition);
      if (!WritesRegisters(stmt)) return;
      ForEachExpr(stmt, [&](const Expr& value) {
        Visit(value, [&](const ExprNode& e) {
          if (e.op == Op::kSelect) Collect(e.args[0]);
        });
      });
    });
  }

  // Each bound once. All threads of a block agree on it.
  const std::vector<Expr>& bounds() const { return bounds_; }

  // The root, without the parts of masks whose bounds are among the `held`.
  Stmt Where(const std::vector<Expr>& held) const {
    const auto without = [&](const Expr& value) {
      return Rewrite(value, [&](const Expr& e) -> Expr {
        if (e->op != Op::kSelect) return nullptr;
        const Expr left = Remaining(e->args[0], held);
        return left == e->args[0] ? nullptr : MakeSelect(left, e->args[1], e->args[2]);
      });
    };
    return RewriteStmts(root_, [&](const Stmt& stmt) -> Stmt {
      if (WritesRegisters(stmt)) return MapExprs(stmt, without);
      if (!IsGuard(stmt)) return nullptr;
      const If& guard = As<If>(stmt);
      const Expr left = Remaining(guard.condition, held);
      if (IsConstInt(left, 1)) return guard.then;
      return left == guard.condition ? nullptr : std::make_shared<If>(left, guard.then);
    });
  }

 private:
  bool IsGuard(const Stmt& stmt) const {
    const If* guard = DynAs<If>(stmt);
    return guards_ && guard != nullptr && !guard->otherwise && WritesRegisters(guard->then);
  }

  // Adds the bounds of the condition's parts. A condition with a part that has none is no mask of the tile.
  void Collect(const Expr& condition) {
    std::vector<Expr> bounds;
    for (const Expr& part : SplitConjunction(condition)) bounds.push_back(ForAll(part, inner_));
    if (std::ranges::count(bounds, nullptr) > 0) return;
    // A bound that is known already is not added again.
    for (const Expr& bound : bounds) SplitConjunction(bound, &bounds_);
  }

  // The parts of a mask's condition that are left; the condition itself for all.
  Expr Remaining(const Expr& condition, const std::vector<Expr>& held) const {
    std::vector<Expr> left = SplitConjunction(condition);
    const size_t dropped = std::erase_if(left, [&](const Expr& part) {
      const Expr bound = ForAll(part, inner_);
      const auto is_bound = [&](const Expr& other) { return StructurallyEqual(other, bound); };
      return bound != nullptr && std::ranges::any_of(held, is_bound);
    });
    return dropped == 0 ? condition : JoinConjunction(left);
  }

  const Stmt root_;
  const bool guards_;
  VarSet inner_;
  std::vector<Expr> bounds_;
};

// The nest in two versions; null when it has no mask that one of the `turns` (loop variables) decides.
Stmt SplitNest(const Stmt& nest, const VarSet& turns) {
  const TileMasks masks(nest, /*guards=*/false);
  const Expr all = Simplify(JoinConjunction(masks.bounds()));
  if (masks.bounds().empty() || !UsesAnyOf(all, turns)) return nullptr;
  return std::make_shared<If>(all, CopyWithSuffix(masks.Where(masks.bounds()), ".inside"), nest);
}

// The turns of a loop whose tiles are inside the edges: from `first` up to `end`, within 0 and the extent.
struct TurnsInside {
  std::vector<Expr> bounds;  // that hold there
  Expr first = IntConst(0), end;
};

std::optional<TurnsInside> TurnsInsideOf(const For& loop, const TileMasks& masks) {
  TurnsInside turns;
  turns.end = loop.extent;
  for (const Expr& bound : masks.bounds()) {
    const Expr least = MarginOf(bound);  // null for a constant
    const std::optional<LinearInVar> margin =
        least == nullptr ? std::nullopt : SplitLinear(least, loop.var.get());
    if (!margin || margin->coefficient == 0) continue;
    turns.bounds.push_back(bound);
    const HalfLine where = WhereAtLeastZero(*margin);
    if (where.end) turns.end = SmallerOf(turns.end, Simplify(where.end));
    if (where.first) turns.first = LargerOf(turns.first, Simplify(where.first));
  }
  if (turns.bounds.empty()) return std::nullopt;
  // A loop of no turns, whose length may be negative, has none from 0 on either.
  if (!IsConstInt(turns.first, int64_t{0})) turns.first = SmallerOf(loop.extent, turns.first);
  if (turns.end != loop.extent) turns.end = SmallerOf(loop.extent, LargerOf(turns.first, turns.end));
  return turns;
}

// `count` turns of the body from turn `first` on; null for none.
Stmt TurnsFrom(const For& loop, const Stmt& body, const Expr& first, const Expr& count,
               const std::string& suffix) {
  if (const auto counts = RangeOf(count); counts && counts->max <= 0) return nullptr;
  int64_t most = loop.var->extent;
  IsConstInt(count, &most);
  const Var turn = MakeVar(absl::StrCat(loop.var->name, suffix), most);
  const Stmt there = SubstituteSimplified(body, VarMap{{loop.var.get(), Simplify(VarRef(turn) + first)}});
  return loop.With(
      {.var = turn, .extent = count, .body = suffix.empty() ? there : CopyWithSuffix(there, suffix)});
}

Stmt UnmaskIn(const Stmt& stmt, VarSet turns, bool in_role);

// The loop in up to three parts; null when no mask of the loop's own turns has an edge.
Stmt SplitTurns(const For& loop, VarSet turns) {
  const TileMasks masks(loop.body, /*guards=*/true);
  const std::optional<TurnsInside> inside = TurnsInsideOf(loop, masks);
  if (!inside) return nullptr;
  std::vector<std::pair<Var, Expr>> lets;
  const auto named = [&](const char* name, const Expr& value) {
    if (IsConstInt(value)) return value;
    lets.emplace_back(MakeVar(absl::StrCat(loop.var->name, name), loop.var->extent + 1), value);
    return VarRef(lets.back().first);
  };
  const Expr first = named(".first", inside->first), extent = named(".turns", loop.extent),
             end = inside->end == loop.extent ? extent : named(".inside", inside->end);
  const Stmt plain = UnmaskIn(masks.Where(inside->bounds), std::move(turns), true);
  Stmt all = MakeSeq({TurnsFrom(loop, loop.body, IntConst(0), first, ".start"),
                      TurnsFrom(loop, plain, first, Simplify(end - first), ""),
                      TurnsFrom(loop, loop.body, end, Simplify(extent - end), ".edge")});
  for (auto let = lets.rbegin(); let != lets.rend(); ++let)
    all = std::make_shared<Let>(let->first, let->second, std::move(all));
  return all;
}

// Whether a product in each turn adds to sums that the turn before has left. Its tiles stream past.
bool AddsUp(const For& loop) {
  if (loop.loop_kind != LoopKind::kSerial) return false;
  BufferSet own;
  bool adds = false;
  VisitStmts(loop.body, [&](const Stmt& stmt) {
    if (const Alloc* alloc = DynAs<Alloc>(stmt)) own.insert(alloc->buffer.get());
    const Mma* mma = DynAs<Mma>(stmt);
    adds |= mma != nullptr && !mma->first && own.count(mma->acc.buffer.get()) == 0;
    return stmt->kind != StmtKind::kFor;
  });
  return adds;
}

Stmt UnmaskIn(const Stmt& stmt, VarSet turns, bool in_role) {
  if (stmt->kind == StmtKind::kCopy) return stmt;
  if (const For* loop = DynAs<For>(stmt)) {
    if (loop->loop_kind == LoopKind::kSerial) turns.insert(loop->var.get());
    if (in_role && AddsUp(*loop)) {
      if (Stmt split = SplitTurns(*loop, turns)) return split;
    }
    if (loop->loop_kind == LoopKind::kThread) {
      const Stmt split = SplitNest(stmt, turns);
      return split ? split : stmt;
    }
  }
  in_role |= stmt->kind == StmtKind::kRoles;
  return MapChildren(stmt, [&](const Stmt& child) { return UnmaskIn(child, turns, in_role); });
}

}  // namespace

Stmt UnmaskTiles(const Stmt& body) { return UnmaskIn(body, {}, false); }

}  // namespace mycc
