// Declares the lowering passes, one file each. A pass is a pure function, and returns the same pointer when
// it changes nothing. lower.cc lists them in order, and says why.
#pragma once

#include <unordered_set>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/function.h"
#include "codegen/passes/lower.h"
#include "codegen/target/target.h"

namespace mycc {

// Splits a kernel into what runs ahead of time on const inputs and what runs in each call. Root statements
// that depend only on const inputs move to `pack`; a const input that the kernel reads directly is copied
// unchanged. Packed buffers are not allocated in either body.
LoweredFunction HoistPacked(const Function& scheduled);

// Nests at the root that the schedule left unbound are bound to a GPU's blocks and threads.
Stmt BindNests(const Stmt& body);

// Blocks become Stores: bindings are substituted, guards added where a binding may leave its domain, and
// initialisations placed above the outermost reduction loop.
absl::StatusOr<Stmt> LowerBlocks(const Stmt& body);

// A loop whose variable is used only in quotients and remainders becomes the nest that it was fused from.
Stmt UnfuseLoops(const Stmt& body);

// Guards become loop structure: a main part in which they hold, and tails of static size.
Stmt PartitionLoops(const Stmt& body);

// Local buffers shrink to the elements in use. Their rows are padded to whole vectors, so that register tiles
// stay aligned.
Stmt FitLocals(const Stmt& body, const Target& target);

// Loops marked with an instruction become Mma statements; a marked loop that a guard made irregular becomes
// an ordinary loop.
absl::StatusOr<Stmt> TensorizeLoops(const Stmt& body, const Target& target);

// Loops marked with a tensor-core instruction become Mma statements over whole tiles.
absl::StatusOr<Stmt> TensorizeTiles(const Stmt& body);

// Copies of pipelined loops run ahead of the computing, through a ring of tiles.
absl::StatusOr<Stmt> PipelineLoops(const Stmt& body);

// Nests over tiles and vectors of rows in the registers of tensor-core threads run over the threads and
// registers that hold their elements.
absl::StatusOr<Stmt> FragmentLoopsOf(const Stmt& body, const Target& target);

// Indices that are converted to f32 are converted in two parts, one of them a constant of unrolled loops.
Stmt SplitConversions(const Stmt& body);

// Sums that loops of products add to in each turn are combined across threads once, after the loop.
Stmt DeferSums(const Stmt& body);

// Loops of roles with two products issue the next turn's first product before this turn's second.
Stmt RotateProducts(const Stmt& body);

// Nests over registers evaluate their masks only in the turns in which some element is masked.
Stmt UnmaskTiles(const Stmt& body);

// Nests that fetch tiles of registers from input tensors move up to the product in front of them.
Stmt FetchAhead(const Stmt& body);

// Products by warpgroups (wgmma) become asynchronous, each a group of its own, and waits come before the
// statements that need them. A loop that releases the operands of its products releases them a turn later.
Stmt OverlapProducts(const Stmt& body);

// A vector loop that reduces into one element gets an accumulator for each lane. The lanes are combined after
// the loops around it.
Stmt SplitReductions(const Stmt& body, const Target& target);

// Loops of a CPU's lanes get their forms, and the size of their vectors.
Stmt ChooseLaneForms(const Stmt& body, const Target& target);

// The last passes for a CPU. They do not change what is computed.
//
// Buffers and stores get what is known from all readers of a buffer.
Stmt PlaceLocals(const Stmt& body);
// Sums of products stay in tile registers over the loops of a reduction.
Stmt PlaceTiles(const Stmt& body);
// Vectors of lanes in loops marked by fetch_next get what they prefetch.
Stmt PlaceFetches(const Stmt& body);
// Stores of vectors in loops marked by nontemporal bypass the caches.
Stmt PlaceBypasses(const Stmt& body);

// A reduction carried by a GPU's thread loops becomes a reduction in each thread and a Combine across
// threads.
absl::StatusOr<Stmt> SplitThreadReductions(const Stmt& body);

// A vector loop with a condition that differs between lanes gets two versions: one without the condition, for
// when it holds in all lanes, and one that tests it in each lane.
Stmt SplitWholeVectors(const Stmt& body);

// Conditions that do not depend on a loop move out of it: those of Ifs, and of selects at the top of a stored
// value.
Stmt HoistConditions(const Stmt& body);

// For GPUs. Neighbouring elementwise nests at the root that read nothing of each other become one, with the
// blocks of all.
Stmt JoinLaunches(const Stmt& body);

// Removes constant conditions, loops of at most one iteration, and buffers that are never read.
Stmt CleanStmts(const Stmt& body);
// Brings every expression into canonical form, then does the same.
Stmt SimplifyStmts(const Stmt& body);

// On a CPU, buffers of Allocs that are too large for the stack move to the workspace. On a GPU, those at the
// root do, because registers and shared memory do not outlive a launch. The two bodies of a function share
// one workspace, because they never run at the same time.
Stmt MoveToWorkspace(const Stmt& body, const Target& target, LoweredFunction* lowered);

// The offsets of a launch's buffers in shared memory, in bytes. Buffers that are never live at the same time
// may overlap.
struct SharedBuffer {
  Buffer buffer;
  int64_t offset;
};
struct SharedPlan {
  std::vector<SharedBuffer> buffers;
  int64_t bytes = 0;
};
SharedPlan PlanShared(const Stmt& launch);

// The last passes for a GPU run once buffers are in the workspace. They do not change what is computed.
//
// Each statement at the root becomes a Launch. Refuses nests that do not fit a GPU's grid and blocks, and
// buffers in registers that threads do not divide in one way.
absl::StatusOr<Stmt> MakeLaunches(const Stmt& body, const Target& target);
// Buffers in shared memory get their offsets, and launches the size of that memory. Refuses launches for
// which the target has too little.
absl::StatusOr<Stmt> PlaceShared(const Stmt& body, const Target& target);
// Barriers are placed. Refuses barriers across the blocks of a reducing cluster.
absl::StatusOr<Stmt> PlaceBarriers(const Stmt& body);
// The statements of a thread block's code that need a barrier before them. All are outside of thread loops:
// the code inside is that of one thread. REQUIRES: buffers in shared memory have offsets.
std::unordered_set<const StmtNode*> PlanBarriers(const Stmt& block);
// Roles get their threads and registers.
Stmt PlaceRoles(const Stmt& body);
// Combines get their groups of threads, and the exchanges between these. Refuses threads that are not whole
// warps where they need a barrier, or, in a reducing cluster, that are not all threads or an equal part of
// one block.
absl::StatusOr<Stmt> PlaceCombines(const Stmt& body);
// Copies by threads get their chunks; some move through registers.
absl::StatusOr<Stmt> DivideCopies(const Stmt& body);
// Vector loops load and store consecutive elements by vectors.
Stmt PlaceVectors(const Stmt& body);
// Loops over arrays in registers are unrolled, and the arrays get their RegisterForm.
Stmt PlaceRegisters(const Stmt& body);

// An estimate of the number of instructions after unrolling. Schedules with too many are refused, so that
// none becomes megabytes of code.
double EstimateInstructions(const Stmt& body, const Target& target);

}  // namespace mycc
