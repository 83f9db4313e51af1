// Divides a thread block among the roles of its pipeline: the order of their threads, and their registers.
//
//   role copy: ...             role compute, 256 threads, 240 registers each: ...
//   role compute: ...     ->   role copy, one of 128 threads, 24 registers each: ...
//
// A role that computes comes first, so that its warpgroups are aligned. Copying roles give registers to
// computing roles (setmaxnreg), as in CUTLASS and FlashAttention-3.
#include <algorithm>

#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/threads.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/target/instructions.h"

namespace mycc {
namespace {

// A left operand that threads hold.
bool HasOperandInRegisters(const Roles::Role& role) {
  return AnyOf<Mma>(role.body, [](const Mma& mma) { return mma.a.buffer->scope != Scope::kShared; });
}

}  // namespace

Stmt PlaceRoles(const Stmt& body) {
  return RewriteEach<Roles>(body, [](const Roles& in_order) {
    std::vector<Roles::Role> roles = in_order.roles;
    int64_t warpgroups = 0;  // that compute
    for (Roles::Role& role : roles) {
      role.by_one = IsForOneThread(role.body);
      role.threads = RoleThreads(role.body);
      warpgroups += role.by_one ? 0 : role.threads / kThreadsOfWarpgroup;
    }
    const RegisterSplit split = SplitRegisters(warpgroups, std::ranges::any_of(roles, HasOperandInRegisters));
    for (Roles::Role& role : roles) role.registers = role.by_one ? split.copy : split.compute;
    std::ranges::stable_sort(roles, {}, &Roles::Role::by_one);
    return std::make_shared<Roles>(std::move(roles), in_order.barrier_counts);
  });
}

}  // namespace mycc
