// The IR's reference interpreter. It runs scheduled or lowered IR, slowly, exactly as stmt.h defines it.
// Thread rule: functions are re-entrant.
//
// Memory starts poisoned: reading an element that was never written is an error, and so is an output left
// unwritten. Indices are checked. Iterations of parallel, grid and thread loops run in an order drawn from
// `seed`. In the outermost parallel or grid loop, and those directly inside it, an iteration that touches an
// element which another one writes is an error. argmax and argmin take the lowest position of the best value
// in any loop order; NaN is better than any number.
//
// In lowered code, threads of a block must synchronize between accesses to an element of memory that one of
// them writes. In a Launch they synchronize at Barrier statements, where they wait for a group of copies or
// another block, and where they begin a bulk copy out of shared memory; a missing barrier is an error in
// every order. So is a buffer in shared memory that is read after another one was written to its bytes. Code
// that is not in a Launch yet has a barrier at the end of each nest of thread loops. Each
// thread has its own registers, so threads of a nest that write the same element in registers must write the
// same value.
//
// Roles run as coroutines, interleaved by `seed`. Accesses of different roles, of asynchronous copies and of
// asynchronous products to one element must be ordered by barriers or groups; a copy or product of memory
// that ordinary stores wrote also needs a fence. Unordered accesses are reported as races in every
// interleaving, not only in unlucky ones. Further errors: a barrier that never completes (a deadlock), an
// arrival or copy that could belong to two phases, a wait for a past phase, an asynchronous copy or product
// that nothing waits for. A role is one actor: its products complete at the same time in all its warpgroups.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/function.h"
#include "codegen/workload/reference.h"

namespace mycc {

// `inputs` are in declared order; const ones are not packed. Returns the outputs. Errors: InvalidArgument for
// inputs that do not match the parameters; FailedPrecondition for each error above, naming element, statement
// and loop variables.
absl::StatusOr<std::vector<NDArray>> RunFunction(const Function& function, const std::vector<NDArray>& inputs,
                                                 uint64_t seed = 0);

}  // namespace mycc
