// Decides what vectors of lanes prefetch in loops marked by fetch_next: the elements of inputs that they will
// read in the next iteration of the loop around. Buffers that were computed here are in a cache already.
//
//   for i in 40:                                    for i in 40:
//     for b in 2 fetching for the next ..:    ->      for b in 2:
//       vector v in 32: y[..] = x[i, b*32 + v]          vector v in 32: y[..] = x[i, b*32 + v],
//                                                           fetching x[i, b*32 + v] 64 elements ahead
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <vector>

#include "codegen/expr/affine.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/lanes.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

// The variables of the loops around the loop with the mark, if they are loops of the code; nullopt where no
// loop around has it. `loops` are all those around the vectors of `lanes`.
std::optional<std::vector<const VarNode*>> LoopsAroundMark(const std::vector<const For*>& loops,
                                                           const For& lanes) {
  std::vector<const VarNode*> outer;
  bool fetches = false, in_team = false;
  for (const For* loop : loops) {
    fetches |= loop->marks.fetches_next;
    if (IsForTeam(*loop, in_team)) in_team = true, fetches = false;
    if (loop != &lanes && !fetches && loop->loop_kind != LoopKind::kUnroll) outer.push_back(loop->var.get());
  }
  return fetches ? std::optional(outer) : std::nullopt;
}

// The distance in elements between the access in this iteration of the loop around and in the next: the
// smallest stride of the loops outside. 0: none moves the access, or lanes do not read one vector.
int64_t NextIteration(const ExprNode& load, const VarNode* lane, const std::vector<const VarNode*>& outer) {
  const Linear offset = ToLinear(OffsetOf(load.buffer->layout, load.args));
  if (offset.CoefficientOf(lane) != 1) return 0;
  int64_t least = 0;
  for (const auto& [atom, coefficient] : offset.terms) {
    if (atom->op != Op::kVar && UsesVar(atom, lane)) return 0;
    const bool moves = std::ranges::count(outer, atom->var.get()) > 0;
    if (moves && (least == 0 || std::abs(coefficient) < std::abs(least))) least = coefficient;
  }
  return least;
}

}  // namespace

Stmt PlaceFetches(const Stmt& body) {
  const BufferSet computed = WrittenUnder(body);
  const auto with_fetches = [&](const Store& store, const For& lanes, const auto& loops) -> Stmt {
    const auto outer = LoopsAroundMark(loops, lanes);
    if (!outer) return nullptr;
    // Each vector once, even if the value reads it several times.
    std::vector<ReadAhead> fetches;
    ForEachLoad(store.value, [&](const ExprNode& load) {
      if (load.buffer->scope != Scope::kGlobal || computed.contains(load.buffer.get())) return;
      const auto same = [&](const ReadAhead& other) { return IsSameRead(*other.load, load); };
      if (std::ranges::any_of(fetches, same)) return;
      const int64_t next = NextIteration(load, lanes.var.get(), *outer);
      if (next != 0) fetches.push_back({Load(load.buffer, load.args), next});
    });
    if (fetches.empty()) return nullptr;
    return Changed(store, [&](Store* changed) { changed->fetches = std::move(fetches); });
  };
  return RewriteEach<For>(RewriteLaneStores(body, with_fetches), [](const For& loop) -> Stmt {
    if (!loop.marks.fetches_next) return nullptr;
    return Changed(loop, [](For* changed) { changed->marks.fetches_next = false; });
  });
}

}  // namespace mycc
