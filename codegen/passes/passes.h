// Declares the lowering passes, one file each. A pass is a pure function, and returns the same pointer when
// it changes nothing. lower.cc lists them in order, and says why.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/function.h"
#include "codegen/passes/lower.h"
#include "codegen/target/target.h"

namespace mycc {

// A kernel split into what runs ahead of time on const inputs and what runs in each call. `packed` is not
// allocated in either body.
struct PackSplit {
  Stmt pack;  // null when there is nothing to pack
  Stmt kernel;
  std::vector<PackedBuffer> packed;
  std::vector<int64_t> packed_bytes;  // as in LoweredFunction
};
// Root statements that depend on const inputs alone go to `pack`; a const input that the kernel reads
// directly becomes a verbatim copy.
PackSplit HoistPacked(const Function& scheduled);

// Nests at the root that no schedule has bound get a GPU's blocks and threads.
Stmt BindNests(const Stmt& body);

// Blocks become Stores: bindings substituted, guards where a binding may leave its domain, initialisations
// above the outermost reduction loop.
absl::StatusOr<Stmt> LowerBlocks(const Stmt& body);

// A loop used only through quotients and remainders of its variable becomes the nest that it was fused from.
Stmt UnfuseLoops(const Stmt& body);

// Guards become loop structure: a main part in which they hold, and tails of static size.
Stmt PartitionLoops(const Stmt& body);

// Local buffers shrink to the elements in use; rows are padded to whole vectors so that register tiles stay
// aligned.
Stmt FitLocals(const Stmt& body, const Target& target);

// Loops marked with an instruction become Mma statements; a marked loop that a guard left irregular becomes
// an ordinary one.
absl::StatusOr<Stmt> TensorizeLoops(const Stmt& body, const Target& target);

// Loops marked with a tensor-core instruction become Mma statements over whole tiles.
absl::StatusOr<Stmt> TensorizeTiles(const Stmt& body);

// Copies of pipelined loops run ahead of the computing, through a ring of tiles.
absl::StatusOr<Stmt> PipelineLoops(const Stmt& body);

// Nests over tensor-core accumulators run over the threads and registers that hold their elements.
absl::StatusOr<Stmt> FragmentLoopsOf(const Stmt& body, const Target& target);

// A vector loop that reduces into one element gets lanes of its own, which are combined after the loops
// around it.
Stmt SplitReductions(const Stmt& body, const Target& target);

// A reduction that a GPU's thread loops carry becomes one of each thread, and a Combine.
absl::StatusOr<Stmt> SplitThreadReductions(const Stmt& body);

// Vector loops whose lanes decide a condition differently become one for whole vectors and one for the rest.
Stmt SplitWholeVectors(const Stmt& body);

// Conditions that do not depend on a loop move out of it, of Ifs and of selects at the top of a stored value.
Stmt HoistConditions(const Stmt& body);

// Takes out constant conditions, loops of no or one iteration, and buffers that nobody reads.
Stmt CleanStmts(const Stmt& body);
// The same, after bringing every expression into canonical form.
Stmt SimplifyStmts(const Stmt& body);

// Buffers of Allocs that are too large for the stack move to the workspace; on a GPU, where a launch does not
// leave anything in registers and shared memory, those at the root.
struct StoragePlan {
  Stmt body;
  std::vector<WorkspaceBuffer> workspace;
  int64_t shared_bytes = 0;
  int64_t thread_bytes = 0;
};
StoragePlan PlanStorage(const Stmt& body, const Target& target);

// The places of one launch's buffers in its blocks' shared memory: buffers that are never live together share
// bytes.
struct SharedBuffer {
  Buffer buffer;
  int64_t offset;
};
struct SharedPlan {
  std::vector<SharedBuffer> buffers;
  int64_t bytes = 0;
};
SharedPlan PlanShared(const Stmt& launch);

// About how many instructions the body becomes when unrolled: what keeps a schedule from asking for megabytes
// of code.
double EstimateInstructions(const Stmt& body, const Target& target);

}  // namespace mycc
