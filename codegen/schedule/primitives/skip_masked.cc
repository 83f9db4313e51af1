// skip_masked(l): leaves out iterations of loop l, over parts of an axis of keys, in which masks hide all
// keys from all rows: causal masks hide the last parts, sliding windows the first ones, too.
//
//   for l in 8:                                        for l in min(8, i.0 + 1):
//     for i: for j:                                      for i: for j:
//       R: m[i] max= select(l*64+j <= i.0*64+i,   ->       R: m[i] max= select(..)
//                           s[i, j], -inf)
//
// A window hides the first keys, too. On a CPU a condition leaves out the first iterations. On a GPU the loop
// begins later, because copies of tiles would run ahead for nothing:
//
//   for l.from in min(8, ..) - max(0, ..): let l = l.from + max(0, ..): ..
//
// Apply it last: other primitives expect loops of constant extent.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/schedule/masked_range.h"
#include "codegen/schedule/primitives/primitives.h"

namespace mycc {

absl::StatusOr<Function> SkipMasked(const Function& function, const Target& target, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindLoop(function, args.Name(0)));
  const For& loop = path.loop();
  if (loop.loop_kind != LoopKind::kSerial || !IsConstInt(loop.extent)) {
    return absl::FailedPreconditionError(
        absl::StrCat("loop ", loop.var->name, " is no serial loop of constant extent"));
  }
  MYCC_ASSIGN_OR_RETURN(const MaskedRange range, RangeOfTerms(path));
  const auto with = [&](const Var& var, const Expr& extent, Stmt body) {
    return WithBody(function, ReplaceAt(path, std::make_shared<For>(var, extent, loop.loop_kind,
                                                                    std::move(body), loop.marks)));
  };
  if (IsConstInt(range.first, int64_t{0})) return with(loop.var, range.end, loop.body);
  if (target.kind == TargetKind::kCpu) {
    const Expr matters = MakeBinary(Op::kLe, range.first, VarRef(loop.var));
    return with(loop.var, range.end, std::make_shared<If>(matters, loop.body));
  }
  const Expr count = Simplify(MakeBinary(Op::kMax, IntConst(0), Simplify(range.end - range.first)));
  const Var from = MakeVar(absl::StrCat(loop.var->name, ".from"), loop.var->extent);
  return with(from, count, std::make_shared<Let>(loop.var, VarRef(from) + range.first, loop.body));
}

}  // namespace mycc
