// split(l, [4, 8]): turns a loop into a nest with these inner extents; the outermost extent follows from the
// loop's.
//
//   for l in 100:            for l.0 in 4:
//     B[i = l]        ->       for l.1 in 4:
//                                for l.2 in 8:
//                                  B[i = l.0*32 + l.1*8 + l.2]     (not executed where i >= 100)
//
// Factors need not divide the extent. When a block's iteration domain does not exclude the extra iterations,
// the block gets a guard: another iteration variable over the loop's extent.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/integers.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

// True when an iteration variable's domain already excludes every value of the loop beyond its extent.
bool DomainCovers(const Block& block, const Var& loop) {
  return std::any_of(block.iters.begin(), block.iters.end(), [&](const IterVar& iter) {
    return iter.binding->op == Op::kVar && iter.binding->var == loop && iter.var->extent == loop->extent;
  });
}

Stmt GuardBlocks(const Stmt& body, const Var& loop) {
  return RewriteEach<Block>(body, [&](const Block& block) -> Stmt {
    if (DomainCovers(block, loop)) return nullptr;
    return Changed(block, [&](Block* guarded) { AddGuard(guarded, loop->extent, VarRef(loop)); });
  });
}

}  // namespace

absl::StatusOr<Function> Split(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindLoop(function, args.Name(0)));
  const For& loop = path.loop();
  const auto& factors = args.Ints(1);
  if (factors.empty()) return Refusal("expected at least one inner factor");
  int64_t inner = 1;
  for (int64_t factor : factors) {
    if (factor < 1 || factor > (int64_t{1} << 40) / inner) {
      return Refusal("factor ", factor, " is not a positive tile size");
    }
    inner *= factor;
  }
  if (loop.loop_kind != LoopKind::kSerial || !loop.marks.instruction.empty()) {
    return Refusal("the loop is ", LoopKindName(loop.loop_kind), "; only serial loops are split");
  }
  const int64_t extent = loop.var->extent;
  const int64_t outer = CeilDiv(extent, inner);

  std::vector<LoopSpec> nest;
  Expr value;
  int64_t scale = inner;
  for (size_t i = 0; i <= factors.size(); ++i) {
    const int64_t part = i == 0 ? outer : factors[i - 1];
    if (i > 0) scale /= factors[i - 1];
    Var var = MakeVar(absl::StrCat(loop.var->name, ".", i), part);
    const Expr term = part == 1 ? IntConst(0) : VarRef(var) * scale;
    value = value ? value + term : term;
    nest.push_back({std::move(var)});
  }
  const Stmt body = outer * inner > extent ? GuardBlocks(loop.body, loop.var) : loop.body;
  return WithBody(function, ReplaceAt(path, MakeNest(nest, SubstituteVars(body, {{loop.var.get(), value}}))));
}

}  // namespace mycc
