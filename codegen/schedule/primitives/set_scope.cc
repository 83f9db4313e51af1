// set_scope(t3, shared): sets the memory of a buffer under a GPU's block loops: shared memory (shared) or
// registers (local). On a CPU it moves an accumulator that is too large for registers to memory (local).
//
//   block b:                      block b:
//     alloc t3[64] local    ->      alloc t3[64] shared
#include <algorithm>

#include "base/status.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/tree.h"

namespace mycc {

absl::StatusOr<Function> SetScope(const Function& function, const Target& target, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Buffer buffer, FindAllocated(function, args.Name(0)));
  Scope scope;
  if (!ParseScope(args.Name(1), &scope) || (scope != Scope::kLocal && scope != Scope::kShared)) {
    return Refusal(args.Name(1), " is not a scope to choose; expected local or shared");
  }
  if (target.kind != TargetKind::kCuda && (buffer->scope != Scope::kAccumulator || scope != Scope::kLocal)) {
    return Refusal("on a CPU only an accumulator changes its scope, to local; ", buffer->name, " is ",
                   ScopeName(buffer->scope));
  }
  MYCC_ASSIGN_OR_RETURN(const Path alloc, FindAlloc(function, buffer));
  const std::vector<const For*> around = LoopsOn(alloc);
  const auto is_thread = [](const For* loop) { return loop->loop_kind == LoopKind::kThread; };
  if (scope == Scope::kShared && std::any_of(around.begin(), around.end(), is_thread)) {
    return Refusal(buffer->name, " is allocated inside a thread loop; each thread has its own");
  }
  if (around.empty()) {
    return Refusal(buffer->name, " is allocated at the root, in the workspace");
  }
  BufferNode moved = *buffer;
  moved.scope = scope;
  return WithBody(function,
                  ReplaceBuffer(function.body, buffer, std::make_shared<BufferNode>(std::move(moved))));
}

}  // namespace mycc
