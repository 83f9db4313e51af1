// The IR's reference interpreter. It runs scheduled or lowered IR, slowly, exactly as stmt.h defines it.
//
// Memory starts poisoned: reading an element that was never written is an error, and so is an output left
// unwritten. Indices are checked. Iterations of parallel, block and thread loops run in an order drawn from
// `seed`; of parallel or block loops (the outermost, and those right inside it) touching an element that
// another iteration writes is an error. argmax and argmin take the lowest position of the best value in any
// loop order; NaN is better than any number.
//
// In lowered code, threads of a block must synchronize (Barriers) between accesses to an element of memory
// that one of them writes; other accesses are errors in every order. An element in registers that several
// threads of a nest write must get the same value from all of them, since each thread has its own.
//
// Roles run as coroutines, interleaved by `seed`. Barriers, groups or fences must order accesses of different
// roles, and of asynchronous copies, to one element (a fence before a copy from ordinarily written memory).
// Unordered accesses are reported as races in every interleaving, not only in unlucky ones. Further errors: a
// barrier that nobody completes (a deadlock), an arrival or copy that could belong to two phases, a wait for
// a past phase, an asynchronous copy that nothing waits for.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/function.h"
#include "codegen/workload/reference.h"

namespace mycc {

enum class Barriers {
  kAfterThreadLoops,  // as the IR has it
  // At Barrier statements, and where threads wait for a group or for another block, begin a bulk copy out of
  // shared memory, or tell another role that they are done: as emitted code has it (codegen/cuda/launch.h,
  // WithBarriers).
  kExplicit,
};

// Inputs (const ones as declared, not packed) in declared order; returns the outputs. Errors: InvalidArgument
// for inputs that do not match the parameters, FailedPrecondition naming element, statement and loop
// variables for everything above.
absl::StatusOr<std::vector<NDArray>> RunFunction(const Function& function, const std::vector<NDArray>& inputs,
                                                 uint64_t seed = 0,
                                                 Barriers meetings = Barriers::kAfterThreadLoops);

}  // namespace mycc
