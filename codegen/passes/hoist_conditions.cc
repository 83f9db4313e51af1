// Conditions that a loop does not change move out of it.
//
//   for j: if i < 3: A(j)                     if i < 3: for j: A(j)
//   for j: t[j] = select(k == 0, 0, u[j])     if k == 0: for j: t[j] = 0   else: for j: t[j] = u[j]
//
// Never out of a parallel, block or thread loop: nested ones stay adjacent, and threads meet where they all
// are.
#include <unordered_set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/passes/copy_stmt.h"
#include "codegen/passes/passes.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

// Bounds the copies made for selects inside one loop.
constexpr int64_t kMaxLeaves = 8;

struct Hoisted {
  std::vector<Expr> invariant, variant;  // parts of the condition
};

Hoisted SplitByLoop(const Expr& condition, const VarNode* var) {
  std::vector<Expr> parts;
  SplitConjunction(condition, &parts);
  Hoisted result;
  for (const Expr& part : parts)
    (UsesVar(part, var) || HasLoad(part) ? result.variant : result.invariant).push_back(part);
  return result;
}

Stmt WithBody(const For& loop, Stmt body) {
  return std::make_shared<For>(loop.var, loop.extent, loop.loop_kind, std::move(body), loop.marks);
}

Stmt HoistIf(const For& loop, const If& branch) {
  // Threads meet to combine: none of them may stay behind a condition.
  if (Contains(loop.body, StmtKind::kCombine)) return nullptr;
  Hoisted split = SplitByLoop(branch.condition, loop.var.get());
  if (split.invariant.empty()) return nullptr;
  const Expr condition = JoinConjunction(split.invariant);
  if (split.variant.empty()) {
    const Stmt otherwise =
        branch.otherwise ? CopyWithSuffix(WithBody(loop, branch.otherwise), ".else") : nullptr;
    return std::make_shared<If>(condition, WithBody(loop, branch.then), otherwise);
  }
  if (branch.otherwise) return nullptr;
  const Stmt rest = std::make_shared<If>(JoinConjunction(split.variant), branch.then);
  return std::make_shared<If>(condition, WithBody(loop, rest));
}

Stmt HoistSelect(const For& loop, const Store& store) {
  const Expr& value = store.value;
  if (value->op != Op::kSelect) return nullptr;
  Hoisted split = SplitByLoop(value->args[0], loop.var.get());
  if (split.invariant.empty()) return nullptr;
  Expr then = value->args[1];
  if (!split.variant.empty()) then = MakeSelect(JoinConjunction(split.variant), then, value->args[2]);
  const Stmt then_loop = WithBody(loop, std::make_shared<Store>(store.buffer, store.indices, then));
  const Stmt else_loop = WithBody(loop, std::make_shared<Store>(store.buffer, store.indices, value->args[2]));
  return std::make_shared<If>(JoinConjunction(split.invariant), then_loop,
                              CopyWithSuffix(else_loop, ".else"));
}

// Parallel and block loops stay adjacent; a GPU's threads stay together.
bool MayMoveOut(const For& loop) {
  return loop.loop_kind != LoopKind::kParallel && loop.loop_kind != LoopKind::kBlock &&
         loop.loop_kind != LoopKind::kThread;
}

}  // namespace

Stmt HoistConditions(const Stmt& body) {
  const std::unordered_set<const VarNode*> in_copies = LoopVarsInCopies(body);
  // Bottom-up, so that a condition climbs as far as it can in one walk.
  return RewriteStmts(body, [&](const Stmt& stmt) -> Stmt {
    const For* loop = DynAs<For>(stmt);
    if (loop == nullptr || in_copies.contains(loop->var.get()) || !MayMoveOut(*loop) ||
        !loop->marks.instruction.empty())
      return nullptr;
    if (const If* branch = DynAs<If>(loop->body)) return HoistIf(*loop, *branch);
    const Store* store = DynAs<Store>(loop->body);
    return store != nullptr && CountLeaves(stmt) <= kMaxLeaves ? HoistSelect(*loop, *store) : nullptr;
  });
}

}  // namespace mycc
