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
#include <algorithm>
#include <optional>

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
    return Refusal("loop ", loop.var->name, " is no serial loop of constant extent");
  }
  MYCC_ASSIGN_OR_RETURN(const MaskedRange range, RangeOfTerms(path));
  const auto with = [&](ForParts parts) { return WithBody(function, ReplaceAt(path, loop.With(parts))); };
  if (IsConstInt(range.first, int64_t{0})) return with({.extent = range.end});
  if (target.kind == TargetKind::kCpu) {
    const Expr matters = MakeBinary(Op::kLe, range.first, VarRef(loop.var));
    return with({.extent = range.end, .body = std::make_shared<If>(matters, loop.body)});
  }
  const Expr count = Simplify(MakeBinary(Op::kMax, IntConst(0), Simplify(range.end - range.first)));
  if (IsConstInt(count, int64_t{0})) return with({.extent = count});
  // No more iterations than there can be: copies ahead of others stay inside of their tensors.
  const std::optional<Interval> counts = RangeOf(count);
  const int64_t most = std::clamp<int64_t>(counts ? counts->max : loop.var->extent, 1, loop.var->extent);
  const Var from = MakeVar(absl::StrCat(loop.var->name, ".from"), most);
  return with({.var = from,
               .extent = count,
               .body = std::make_shared<Let>(loop.var, VarRef(from) + range.first, loop.body)});
}

}  // namespace mycc
