// reverse(l): executes a loop's iterations in the reverse order. The last rows of a causal mask take longest:
// if they begin first, the machine is busy to the end.
//
//   block l in 8: for k in l + 1: A(l, k)   ->   block l in 8: for k in 8 - l: A(7 - l, k)
#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/tree.h"

namespace mycc {

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
  Stmt body = SubstituteVars(loop.body, {{loop.var.get(), mirrored}});
  return WithBody(function, ReplaceAt(path, loop.With({.body = std::move(body)})));
}

}  // namespace mycc
