// reorder([k, i]): puts loops of one perfect nest in the given order; other loops between them keep their
// places.
//
//   for i:                  for k:
//     for j:          ->      for j:
//       for k: B                for i: B
//
// With several blocks inside, at most one of the named loops may carry a reduction. Then dependences between
// the blocks run only along that loop, and every order of the others preserves them.
//
// reverse(l): executes a loop's iterations in the reverse order. The last rows of a causal mask take longest:
// if they begin first, the machine is busy to the end.
//
//   block l in 8: for k in l + 1: A(l, k)   ->   block l in 8: for k in 8 - l: A(7 - l, k)
#include <algorithm>

#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/tree.h"

namespace mycc {

absl::StatusOr<Function> Reorder(const Function& function, const Target&, const StepArgs& args) {
  const auto& names = args.Names(0);
  if (names.size() < 2) return Refusal("expected at least two loops");
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (std::find(names.begin(), name, *name) != name) return Refusal("loop ", *name, " is named twice");
  }
  const auto position = [&](const std::string& name) {
    return std::ranges::find(names, name) - names.begin();
  };

  // The outermost named loop is the one whose path contains no other.
  Path top;
  for (const std::string& name : names) {
    MYCC_ASSIGN_OR_RETURN(Path path, FindLoop(function, name));
    if (top.nodes.empty() || path.nodes.size() < top.nodes.size()) top = std::move(path);
  }
  std::vector<const For*> chain;
  size_t found = 0;
  int reduce_loops = 0;
  for (Stmt stmt = top.target(); found < names.size(); stmt = As<For>(stmt).body) {
    if (stmt->kind != StmtKind::kFor) {
      return Refusal("the loops are not one perfect nest: ", chain.back()->var->name,
                     " holds something other than one loop");
    }
    const std::string& name = As<For>(stmt).var->name;
    const bool again = std::ranges::any_of(chain, [&](const For* loop) { return loop->var->name == name; });
    chain.push_back(&As<For>(stmt));
    if (position(name) < static_cast<ptrdiff_t>(names.size())) {
      if (again) return Refusal("two loops are called ", name);
      ++found;
      reduce_loops += IsReduceLoop(*chain.back());
    }
  }
  if (BlocksUnder(chain.back()->body).size() > 1 && reduce_loops > 1) {
    return Refusal("several blocks stand inside, and more than one of the loops carries a reduction");
  }

  // Named loops take the positions of named loops, in the given order.
  std::vector<const For*> ordered = chain;
  size_t next = 0;
  for (const For*& slot : ordered) {
    if (position(slot->var->name) == static_cast<ptrdiff_t>(names.size())) continue;
    const std::string& wanted = names[next++];
    slot = *std::ranges::find_if(chain, [&](const For* loop) { return loop->var->name == wanted; });
  }
  return WithBody(function, ReplaceAt(top, InLoops(ordered, chain.back()->body)));
}

absl::StatusOr<Function> Reverse(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindLoop(function, args.Name(0)));
  const For& loop = path.loop();
  if (!IsConstInt(loop.extent)) {
    return Refusal("loop ", loop.var->name, " is no loop of constant extent");
  }
  if (IsReduceLoop(loop)) {
    return Refusal("loop ", loop.var->name, " carries a reduction, whose first iteration initializes it");
  }
  const Expr mirrored = Simplify(loop.extent - 1 - VarRef(loop.var));
  return WithLoopBody(function, path, SubstituteVars(loop.body, {{loop.var.get(), mirrored}}));
}

}  // namespace mycc
