#include "codegen/passes/concurrent_lanes.h"

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

}  // namespace mycc
