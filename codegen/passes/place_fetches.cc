// Decides what vectors of lanes prefetch in loops marked by fetch_next: the elements of inputs that they will
// read in the next iteration of the loop around. Buffers that were computed here are in a cache already.
//
//   for i in 40:                                    for i in 40:
//     for b in 2 fetching for the next ..:    ->      for b in 2:
//       vector v in 32: y[..] = x[i, b*32 + v]          vector v in 32: y[..] = x[i, b*32 + v],
//                                                           fetching x[i, b*32 + v] 64 elements ahead
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "codegen/expr/affine.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

class FetchPlacer {
 public:
  explicit FetchPlacer(const Stmt& body) : computed_(WrittenUnder(body)) {}

  Stmt Placed(const Stmt& stmt) const { return Inside(stmt, {}); }

 private:
  // The loops around a statement.
  struct Around {
    std::vector<const VarNode*> outer;  // those around the loop with the mark, if they are loops of the code
    bool fetches = false;               // in a loop with the mark
    bool in_team = false;
    const For* lanes = nullptr;
  };

  Stmt Inside(const Stmt& stmt, Around around) const {
    if (stmt->kind == StmtKind::kTileMove) return stmt;
    if (const Store* store = DynAs<Store>(stmt)) {
      if (!around.fetches || around.lanes == nullptr) return stmt;
      std::vector<ReadAhead> fetches = FetchesOf(*store, around);
      if (fetches.empty()) return stmt;
      return Changed(*store, [&](Store* changed) { changed->fetches = std::move(fetches); });
    }
    if (const For* loop = DynAs<For>(stmt)) {
      const bool has_lanes = loop->loop_kind == LoopKind::kVector && loop->marks.form == LaneForm::kPlain;
      if (StoresShuffled(*loop) || (has_lanes && around.lanes != nullptr)) return stmt;
      around.fetches |= loop->marks.fetches_next;
      if (IsForTeam(*loop, around.in_team)) around.in_team = true, around.fetches = false;
      if (has_lanes) {
        around.lanes = loop;
      } else if (!around.fetches && loop->loop_kind != LoopKind::kUnroll) {
        around.outer.push_back(loop->var.get());
      }
    }
    return MapChildren(stmt, [&](const Stmt& child) { return Inside(child, around); });
  }

  // Each vector once, even if the value reads it several times.
  std::vector<ReadAhead> FetchesOf(const Store& store, const Around& around) const {
    std::vector<const ExprNode*> seen;
    std::vector<ReadAhead> fetches;
    ForEachLoad(store.value, [&](const ExprNode& load) {
      if (load.buffer->scope != Scope::kGlobal || computed_.contains(load.buffer.get())) return;
      const auto same = [&](const ExprNode* other) { return IsSameRead(*other, load); };
      if (std::any_of(seen.begin(), seen.end(), same)) return;
      seen.push_back(&load);
      const int64_t next = NextIteration(load, around);
      if (next != 0) fetches.push_back({Load(load.buffer, load.args), next});
    });
    return fetches;
  }

  // The distance in elements between the access in this iteration of the loop around and in the next: the
  // smallest stride of the loops outside. 0: none moves the access, or lanes do not read one vector.
  int64_t NextIteration(const ExprNode& load, const Around& around) const {
    const Linear offset = ToLinear(OffsetOf(load.buffer->layout, load.args));
    const VarNode* lane = around.lanes->var.get();
    if (offset.CoefficientOf(lane) != 1) return 0;
    int64_t least = 0;
    for (const auto& [atom, coefficient] : offset.terms) {
      if (atom->op != Op::kVar) {
        if (UsesVar(atom, lane)) return 0;
        continue;
      }
      const bool moves = std::count(around.outer.begin(), around.outer.end(), atom->var.get()) > 0;
      if (moves && (least == 0 || std::abs(coefficient) < std::abs(least))) least = coefficient;
    }
    return least;
  }

  const BufferSet computed_;
};

}  // namespace

Stmt PlaceFetches(const Stmt& body) {
  return RewriteEach<For>(FetchPlacer(body).Placed(body), [](const For& loop) -> Stmt {
    if (!loop.marks.fetches_next) return nullptr;
    LoopMarks marks = loop.marks;
    marks.fetches_next = false;
    return loop.Marked(marks);
  });
}

}  // namespace mycc
