#include "codegen/passes/lanes.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "codegen/expr/affine.h"
#include "codegen/expr/integers.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/stmt_facts.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

// Whether values of several iterations meet in what the loop stores, so that its store is none of a vector of
// lanes. REQUIRES: the loop has its form.
bool StoresShuffled(const For& loop) {
  const LaneForm form = loop.marks.form;
  return form == LaneForm::kReduces || form == LaneForm::kInterleaves || form == LaneForm::kTurnsGroups;
}

// `loops` are those around the statement, `lanes` the one whose vectors it is in; null for none.
Stmt RewrittenInLanes(const Stmt& stmt, const LaneStoreRewrite& rewrite, const For* lanes,
                      std::vector<const For*> loops) {
  if (stmt->kind == StmtKind::kTileMove) return stmt;
  if (const Store* store = DynAs<Store>(stmt); store != nullptr && lanes != nullptr) {
    Stmt made = rewrite(*store, *lanes, loops);
    return made ? made : stmt;
  }
  const auto inside = [&](const Stmt& child) { return RewrittenInLanes(child, rewrite, lanes, loops); };
  const For* loop = DynAs<For>(stmt);
  if (loop == nullptr) return MapChildren(stmt, inside);
  const bool has_lanes = loop->loop_kind == LoopKind::kVector && loop->marks.form == LaneForm::kPlain;
  if (StoresShuffled(*loop) || (has_lanes && lanes != nullptr)) return stmt;
  if (has_lanes) lanes = loop;
  loops.push_back(loop);
  return MapChildren(stmt, inside);
}

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
      // Loops whose extent differs between lanes are not widened.
      case StmtKind::kFor: possible &= ConstExtent(As<For>(stmt)).has_value(); break;
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
  const std::optional<LinearInVar> first = SplitLinear(indices.front(), var);
  if (!first || first->coefficient == 0) return false;
  const Expr rest = Simplify(first->rest);
  return std::ranges::all_of(indices, [&](const Expr& index) {
    const std::optional<LinearInVar> linear = SplitLinear(index, var);
    return linear && linear->coefficient == first->coefficient && !UsesAnyOf(linear->rest, inner) &&
           !HasLoad(linear->rest) && StructurallyEqual(Simplify(linear->rest), rest);
  });
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

int64_t ConsecutiveElements(const Layout& layout, const std::vector<Expr>& indices, const VarNode* lane,
                            int64_t most) {
  // A dimension of one element has a single index, which moves nothing.
  const Linear offset = ToLinear(Simplify(OffsetOf(layout.Coalesced(), indices)));
  if (offset.CoefficientOf(lane) != 1) return 1;
  int64_t common = std::gcd(most, offset.constant);
  for (const auto& [atom, coefficient] : offset.terms) {
    if (atom->var.get() != lane) common = UsesVar(atom, lane) ? 1 : std::gcd(common, coefficient);
  }
  return common;
}

// The margin is negative where the condition is false. It must be lane + rest or rest - lane, with a rest
// that is a multiple of the number of lanes plus a constant. The constant decides whether the sign changes
// between two lanes.
bool LanesAgree(const Expr& condition, const VarNode* lane, int64_t lanes) {
  const Expr margin = MarginOf(condition);
  if (margin == nullptr) return false;
  const auto split = SplitLinear(Simplify(margin), lane);
  if (!split || (split->coefficient != 1 && split->coefficient != -1)) return false;
  const Linear rest = ToLinear(split->rest);
  const int64_t over = FloorModInt(rest.constant, lanes);
  return over == (split->coefficient == 1 ? 0 : lanes - 1) &&
         std::ranges::all_of(rest.terms, [&](const auto& term) { return term.second % lanes == 0; });
}

bool CanWiden(const For& loop) {
  BufferUses uses;
  if (!CollectLaneUses(loop.body, &uses)) return false;
  const auto inner = LoopVarsUnder(loop.body);
  return std::ranges::all_of(uses, [&](const auto& entry) {
    const BufferUse& use = entry.second;
    return !use.written || use.own || SeparatesLanes(*entry.first, use, loop.var.get(), inner);
  });
}

Stmt RewriteLaneStores(const Stmt& body, const LaneStoreRewrite& rewrite) {
  return RewrittenInLanes(body, rewrite, nullptr, {});
}

}  // namespace mycc
