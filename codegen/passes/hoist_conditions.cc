// Moves conditions that do not depend on a loop out of it.
//
//   for j: if i < 3: A(j)                     if i < 3: for j: A(j)
//   for j: t[j] = select(k == 0, 0, u[j])     if k == 0: for j: t[j] = 0   else: for j: t[j] = u[j]
//   for j: t[j] += select(k < 9, u[j], 0)     if k < 9: for j: t[j] += u[j]   else: for j: t[j] += 0
//
// Conditions stay inside parallel, grid and thread loops: nested ones must stay adjacent, and all threads
// must reach a barrier.
#include <utility>
#include <vector>

#include "codegen/expr/conjunction.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

struct Hoisted {
  std::vector<Expr> invariant, variant;  // parts of the condition
};

Hoisted SplitByLoop(const Expr& condition, const VarNode* var) {
  Hoisted result;
  for (const Expr& part : SplitConjunction(condition))
    (UsesVar(part, var) || HasLoad(part) ? result.variant : result.invariant).push_back(part);
  return result;
}

// Whether the loop stores to a tensor that the expression loads.
bool ChangesIn(const Expr& expr, const Stmt& body) {
  return HasLoad(expr) && AnyStmt(body, [&](const Stmt& stmt) {
           const Store* store = DynAs<Store>(stmt);
           return store == nullptr ? stmt->kind == StmtKind::kMma || stmt->kind == StmtKind::kCopy
                                   : Loads(expr, store->buffer);
         });
}

Stmt HoistIf(const For& loop, const If& branch) {
  // A Combine is a barrier: all threads must reach it, so no condition may be around it.
  if (Contains(loop.body, StmtKind::kCombine)) return nullptr;
  Hoisted split = SplitByLoop(branch.condition, loop.var.get());
  // A whole condition on data may move where the loop leaves the data alone.
  if (split.invariant.empty() && !UsesVar(branch.condition, loop.var.get()) &&
      !ChangesIn(branch.condition, loop.body))
    std::swap(split.invariant, split.variant);
  if (split.invariant.empty()) return nullptr;
  const Expr condition = JoinConjunction(split.invariant);
  if (split.variant.empty()) {
    const Stmt otherwise =
        branch.otherwise ? CopyWithSuffix(loop.With({.body = branch.otherwise}), ".else") : nullptr;
    return std::make_shared<If>(condition, loop.With({.body = branch.then}), otherwise);
  }
  if (branch.otherwise) return nullptr;
  const Stmt rest = std::make_shared<If>(JoinConjunction(split.variant), branch.then);
  return std::make_shared<If>(condition, loop.With({.body = rest}));
}

// The select whose condition may move out of the loop: the value itself, or in a reduction step one that
// guards a load (a window's padding).
Expr SelectOf(const Expr& value, const VarNode* var) {
  const auto can_move = [&](const ExprNode& e) {
    return e.op == Op::kSelect && !SplitByLoop(e.args[0], var).invariant.empty();
  };
  if (value->op == Op::kSelect) return can_move(*value) ? value : nullptr;
  if (!IsBinary(value->op) || value->args[0]->op != Op::kLoad) return nullptr;
  Expr found;
  Rewrite(value->args[1], [&](const Expr& e) -> Expr {
    if (!found && can_move(*e) && HasLoad(e->args[1])) found = e;
    return nullptr;
  });
  return found;
}

Stmt HoistSelect(const For& loop, const Store& store) {
  const Expr select = SelectOf(store.value, loop.var.get());
  if (!select) return nullptr;
  Hoisted split = SplitByLoop(select->args[0], loop.var.get());
  Expr then = select->args[1];
  if (!split.variant.empty()) then = MakeSelect(JoinConjunction(split.variant), then, select->args[2]);
  const auto with = [&](const Expr& arm) {
    const Expr value = Rewrite(store.value, [&](const Expr& e) { return e == select ? arm : nullptr; });
    return loop.With({.body = std::make_shared<Store>(store.buffer, store.indices, value)});
  };
  return std::make_shared<If>(JoinConjunction(split.invariant), with(then),
                              CopyWithSuffix(with(select->args[2]), ".else"));
}

}  // namespace

Stmt HoistConditions(const Stmt& body) {
  const VarSet in_copies = LoopVarsInCopies(body);
  // Bottom-up, so that a condition climbs as far as it can in one walk.
  return RewriteEach<For>(body, [&](const For& loop) -> Stmt {
    // Parallel and grid loops stay adjacent; a GPU's threads take the same path.
    const bool may_move_out = loop.loop_kind == LoopKind::kSerial || loop.loop_kind == LoopKind::kVector ||
                              loop.loop_kind == LoopKind::kUnroll;
    if (!may_move_out || in_copies.contains(loop.var.get()) || !loop.marks.instruction.empty())
      return nullptr;
    if (const If* branch = DynAs<If>(loop.body)) return HoistIf(loop, *branch);
    const Store* store = DynAs<Store>(loop.body);
    return store != nullptr ? HoistSelect(loop, *store) : nullptr;
  });
}

}  // namespace mycc
