// lane_predicate(l, 32): puts a loop of 32 iterations inside l; only its first iteration executes the body.
// Bound to threads, it lets one thread of a group of 32 do work that must be done once.
//
//   for l: B   ->   for l: for l.e in 32: B        (not executed where l.e >= 1)
//
// The new loop is called l.e2, l.e3, ... when a loop l.e, or a part of one, exists.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/ir/visit.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/tree.h"

namespace mycc {

absl::StatusOr<Function> LanePredicate(const Function& function, const Target&, const StepArgs& args) {
  constexpr int64_t kMaxGroup = 8192;  // threads of a cluster's blocks
  MYCC_ASSIGN_OR_RETURN(const Path path, FindLoop(function, args.Name(0)));
  const For& loop = path.loop();
  const int64_t group = args.Int(1);
  if (group < 1 || group > kMaxGroup) {
    return Refusal("a group of ", group, "; expected 1 to ", kMaxGroup);
  }
  if (!loop.marks.instruction.empty()) return Refusal("the loop belongs to a hardware instruction");
  // Parts of a loop that was split have names that begin with its own.
  const auto is_taken = [&](const std::string& name) {
    return AnyOf<For>(function.body, [&](const For& other) {
      return other.var->name == name || absl::StartsWith(other.var->name, name + ".");
    });
  };
  const Var member = MakeVar(FirstFree(absl::StrCat(loop.var->name, ".e"), is_taken), group);
  const Stmt elected = RewriteEach<Block>(loop.body, [&](const Block& old) {
    return Changed(old, [&](Block* block) { AddGuard(block, 1, VarRef(member)); });
  });
  return WithLoopBody(function, path, MakeNest({{member}}, elected));
}

}  // namespace mycc
