// The loop-and-tile IR: immutable statements, shared by pointer, with value semantics.
//
// Two levels share the nodes. Primitives transform *scheduled* IR: loops around Blocks, where a block is an
// instance of "out[...] = value" or "out[...] (op)= value" over named iteration variables. *Lowered* IR has
// no Blocks: loops, Stores and tile statements, ready for a back end. passes/lower.cc goes from the first to
// the second. The interpreter (interpreter.h) runs both and defines their meaning. Thread rule: immutable, so
// free to share.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/expr/expr.h"

namespace mycc {

enum class StmtKind : uint8_t {
  // Structure.
  kSeq,
  kFor,
  kIf,
  kLet,
  kAlloc,
  // Scheduled IR alone.
  kBlock,
  // Work.
  kStore,
  kCombine,
  kMma,
  kCopy,
  // Pipelines.
  kRoles,
  kArrive,
  kWait,
  kCommitGroup,
  kWaitGroup,
  kFence,
  kMeet,
  // Between thread blocks.
  kSignal,
  kAwait,
};

struct StmtNode {
  explicit StmtNode(StmtKind kind) : kind(kind) {}
  virtual ~StmtNode() = default;
  const StmtKind kind;
};
using Stmt = std::shared_ptr<const StmtNode>;

// Runs its parts in order.
struct Seq : StmtNode {
  explicit Seq(std::vector<Stmt> stmts) : StmtNode(StmtKind::kSeq), stmts(std::move(stmts)) {}
  std::vector<Stmt> stmts;
};

// How a loop's iterations are carried out. All kinds mean the same to the interpreter, except that iterations
// of kParallel, kBlock and kThread loops must be independent (it may run them in any order).
//
// kBlock and kThread are of GPUs. An iteration of nested kBlock loops is a thread block; the block's threads
// carry out the code inside together. Nested kThread loops number the threads, the innermost fastest, and
// inside them the code is one thread's; they meet where the outermost of them ends: earlier writes are
// visible after. A kThread loop may carry a reduction into a tensor in registers: then all threads of the
// loop get the result.
enum class LoopKind : uint8_t { kSerial, kParallel, kVector, kUnroll, kBlock, kThread };
std::string_view LoopKindName(LoopKind kind);  // "serial"
bool ParseLoopKind(const std::string& name, LoopKind* kind);

// How the copies into shared memory under a loop overlap with the computing that reads them (set by the
// pipeline primitive, carried out by passes/pipeline_loops.cc).
enum class PipelineKind : uint8_t {
  kNone,
  kThreads,  // every thread copies ahead: cp.async into a ring of stages
  kBulk,  // a warp of its own issues bulk copies into a ring; the other warps compute (warp specialization)
};
struct LoopPipeline {
  PipelineKind kind = PipelineKind::kNone;
  int stages = 0;

  bool operator==(const LoopPipeline&) const = default;
};

// How the warps of a block share a tile of a tensor-core instruction, along its rows and its columns; of an
// instruction that a warpgroup carries out, warpgroups.
struct WarpGrid {
  int rows = 1, columns = 1;

  bool operator==(const WarpGrid&) const = default;
};

// Persistent blocks share out iterations that are left over when all have as many, by steps of the pipelined
// loop inside (stream-K), in `groups` groups of `members`. No groups: whole iterations alone.
struct StreamGroups {
  int64_t groups = 0, members = 0;

  bool operator==(const StreamGroups&) const = default;
};

// Marks that primitives leave on a loop for lowering to carry out.
struct LoopMarks {
  // Non-empty when this loop and those inside it are to become one tile statement of that hardware
  // instruction (see schedule/instructions.h); set by the tensorize primitive.
  std::string instruction;
  WarpGrid warps;  // of tensor cores
  // A CPU's: iterations of this loop by which the rows' operand and the lanes' are fetched ahead; 0: not.
  int64_t rows_ahead = 0, lanes_ahead = 0;
  bool fetches_sums = false;  // of tile registers: see Mma
  // Whole vectors stored to the function's outputs under this loop go to memory, past a CPU's caches.
  bool bypasses_caches = false;
  // A CPU's: the inputs that this loop reads are fetched for the next iteration of the loop around, too.
  bool fetches_next = false;
  LoopPipeline pipeline;
  // A kBlock loop's: the thread blocks that run all its iterations, one after the other; 0: one block each.
  int64_t persistent_blocks = 0;
  StreamGroups stream;  // of such a loop
  // A kBlock loop's: thread blocks that are to share an SM, and its registers; 0: as many as the assembler
  // chooses.
  int64_t resident_blocks = 0;
  // A kBlock loop's: the thread blocks, a cluster, that carry out each of its iterations together. Thread
  // loops inside number the threads of all of them; these reduce together, but hand on nothing in memory. 0:
  // one block each.
  int64_t joined_blocks = 0;
  // A persistent loop's: the groups of the block's warps that take turns on its iterations (ping-pong).
  int alternating = 1;
  // The outermost kBlock loop's: its iterations are the thread blocks of one cluster, which run side by side
  // and send each other the tiles that all of them want.
  bool cluster = false;
};

// for var in [0, extent). `extent` <= var->extent always (the variable keeps the range it was made with;
// tails shrink the loop).
struct For : StmtNode {
  For(Var var, Expr extent, LoopKind loop_kind, Stmt body, LoopMarks marks = {})
      : StmtNode(StmtKind::kFor),
        var(std::move(var)),
        extent(std::move(extent)),
        loop_kind(loop_kind),
        body(std::move(body)),
        marks(std::move(marks)) {}
  Var var;
  Expr extent;
  LoopKind loop_kind;
  Stmt body;
  LoopMarks marks;
};

struct If : StmtNode {
  If(Expr condition, Stmt then, Stmt otherwise = nullptr)
      : StmtNode(StmtKind::kIf),
        condition(std::move(condition)),
        then(std::move(then)),
        otherwise(std::move(otherwise)) {}
  Expr condition;
  Stmt then;
  Stmt otherwise;  // may be null
};

// `var` has this value, which is in its range, inside `body`.
struct Let : StmtNode {
  Let(Var var, Expr value, Stmt body)
      : StmtNode(StmtKind::kLet), var(std::move(var)), value(std::move(value)), body(std::move(body)) {}
  Var var;
  Expr value;
  Stmt body;
};

// The buffer exists inside `body`, uninitialised at its start. Inside a parallel loop each iteration has its
// own.
struct Alloc : StmtNode {
  Alloc(Buffer buffer, Stmt body)
      : StmtNode(StmtKind::kAlloc), buffer(std::move(buffer)), body(std::move(body)) {}
  Buffer buffer;
  Stmt body;
};

// One iteration variable of a block: its domain is [0, var->extent) and in this place of the nest its value
// is `binding`, an expression of the enclosing loops.
struct IterVar {
  Var var;
  bool reduce = false;
  Expr binding;
};

// out[indices] = value (reduce == kNone) or out[indices] = combine(out[indices], value). `indices` and
// `value` are over iteration variables and, for buffers that were moved into a loop, over the enclosing
// loops' variables (the offset of the region).
//
// An instance whose binding lies outside the iteration domain is not executed: that is how splits that do not
// divide, and regions that reach past an edge, stay correct, and where lowering gets its guards from. A
// reduction with init == true stores the identity into out[indices] before the instance in which all
// reduction variables are 0, executed or not, first in every loop order; with init == false another block
// filled the accumulator. argmax/argmin: `value` is compared, the position is that of the single reduce
// variable, lowest first; the running best value lives in `arg_value`, a buffer like `out` with value's type.
struct Block : StmtNode {
  Block() : StmtNode(StmtKind::kBlock) {}
  std::string name;  // unique in the function
  std::vector<IterVar> iters;
  Buffer out;
  std::vector<Expr> indices;
  Expr value;
  ReduceOp reduce = ReduceOp::kNone;
  bool init = false;
  Buffer arg_value;  // argmax/argmin alone
};

struct Store : StmtNode {
  Store(Buffer buffer, std::vector<Expr> indices, Expr value)
      : StmtNode(StmtKind::kStore),
        buffer(std::move(buffer)),
        indices(std::move(indices)),
        value(std::move(value)) {}
  Buffer buffer;
  std::vector<Expr> indices;
  Expr value;
};

// buffer[indices] = combine(buffer[indices], value) in every iteration of the thread loops around, which meet
// to do it: iterations that name one element all add to it, and all have the result. Reductions that thread
// loops carry become this.
struct Combine : StmtNode {
  Combine(ReduceOp reduce, Buffer buffer, std::vector<Expr> indices, Expr value)
      : StmtNode(StmtKind::kCombine),
        reduce(reduce),
        buffer(std::move(buffer)),
        indices(std::move(indices)),
        value(std::move(value)) {}
  ReduceOp reduce;
  Buffer buffer;
  std::vector<Expr> indices;
  Expr value;
};

// A two-dimensional view of a buffer for tile statements: element (p, q) is at buffer[indices] displaced by p
// * row_stride + q * col_stride elements.
struct TileView {
  Buffer buffer;
  std::vector<Expr> indices;  // of element (0, 0)
  int64_t row_stride = 0;
  int64_t col_stride = 0;
  // Rows in blocks that begin `block_stride` apart, such as pixels of several rows of an image; 0: all rows
  // are equally far apart.
  int64_t block_rows = 0;
  int64_t block_stride = 0;

  // Elements from row 0 to row i.
  int64_t Row(int64_t i) const {
    return block_rows == 0 ? i * row_stride : i / block_rows * block_stride + i % block_rows * row_stride;
  }
};

// acc(i, j) += sum over k of a(i, k) * b(k, j), for i < m, j < n, k < k: one or several hardware instructions
// of the row named `instruction`. Products and sums are in acc's type; mma.tf32 rounds a and b as tf32()
// does.
//
// With a `group` of g, g elements of the depth lie together in a and in b (a lane of a dot product multiplies
// them at once): a's columns and b's rows are counted in groups, element k being the k % g-th of its group.
struct Mma : StmtNode {
  Mma(std::string instruction, int64_t m, int64_t n, int64_t k, TileView acc, TileView a, TileView b,
      WarpGrid warps = {}, int64_t group = 1)
      : StmtNode(StmtKind::kMma),
        instruction(std::move(instruction)),
        m(m),
        n(n),
        k(k),
        acc(std::move(acc)),
        a(std::move(a)),
        b(std::move(b)),
        warps(warps),
        group(group) {}
  bool rounds_to_tf32() const { return instruction == "mma.tf32"; }
  std::string instruction;
  int64_t m, n, k;
  TileView acc, a, b;
  WarpGrid warps;  // of tensor cores: who computes which part of the tile
  int64_t group;
  // A CPU's: elements from the place where an operand is read to the one that is fetched meanwhile; 0: none.
  int64_t a_ahead = 0, b_ahead = 0;
  bool fetches_sums = false;  // the place of the sums is fetched for writing, before they are computed
};

// An asynchronous copy is carried out by each thread, 4 to 16 bytes at a time (cp.async), or by the copy
// engine, a whole box that one thread issues (cp.async.bulk.tensor).
enum class CopyEngine : uint8_t { kThreads, kBulk };

// Carries out `body` asynchronously: a nest of loops around one store of a loaded element, or of
// select(condition, element, 0). It is complete only for those who waited for the phase of the barrier it
// signals (when `barrier` is given: the phase that is open when the copy is issued), or for a group it was
// committed with; for all others reading or writing what it writes, or writing what it reads, is a race.
//
// With `cluster` (the variable of a cluster loop of n blocks) it is a multicast: all blocks of the cluster
// carry it out, each copying the n-th part of the nest's outermost loop that is its own to the tiles of all
// of them, where it signals the barrier (see ir/cluster.h).
struct Copy : StmtNode {
  Copy(Stmt body, CopyEngine engine, Expr barrier = nullptr, Expr cluster = nullptr)
      : StmtNode(StmtKind::kCopy),
        body(std::move(body)),
        engine(engine),
        barrier(std::move(barrier)),
        cluster(std::move(cluster)) {}
  Stmt body;
  CopyEngine engine;
  Expr barrier;  // index into the enclosing Roles' barriers, over loop variables (a ring's slot); null for
                 // none
  Expr cluster;  // null for none
};

// Runs its roles concurrently (producer and consumers of a warp-specialized pipeline) and ends when all have
// ended. Barrier `b` completes a phase when `barrier_counts[b]` arrivals (and the asynchronous copies that
// signal it) have come; phases count up from 0.
struct Roles : StmtNode {
  struct Role {
    std::string name;
    Stmt body;
  };
  Roles(std::vector<Role> roles, std::vector<int> barrier_counts)
      : StmtNode(StmtKind::kRoles), roles(std::move(roles)), barrier_counts(std::move(barrier_counts)) {}
  std::vector<Role> roles;
  std::vector<int> barrier_counts;
};

// Arrives at barrier[index] (index over loop variables: a ring's slot); with `cluster` (the variable of a
// cluster loop), at that barrier of every block of the cluster.
struct Arrive : StmtNode {
  explicit Arrive(Expr barrier, Expr cluster = nullptr)
      : StmtNode(StmtKind::kArrive), barrier(std::move(barrier)), cluster(std::move(cluster)) {}
  Expr barrier, cluster;
};
// Waits until the barrier has completed phase number `phase`; -1 is complete from the start (the first turn
// of a ring). Hardware keeps one bit of the phase, so waiting for a phase when the barrier has already
// completed the one after it, or has not completed the one before it, is an error.
struct Wait : StmtNode {
  Wait(Expr barrier, Expr phase)
      : StmtNode(StmtKind::kWait), barrier(std::move(barrier)), phase(std::move(phase)) {}
  Expr barrier, phase;
};
// cp.async style groups: Commit closes the group of this role's asynchronous copies so far; WaitGroup waits
// until at most `pending` are open.
struct CommitGroup : StmtNode {
  CommitGroup() : StmtNode(StmtKind::kCommitGroup) {}
};
struct WaitGroup : StmtNode {
  explicit WaitGroup(int pending) : StmtNode(StmtKind::kWaitGroup), pending(pending) {}
  int pending;
};
// Makes this role's ordinary writes visible to asynchronous copies (fence.proxy.async): a copy from memory
// written without it is a race.
struct Fence : StmtNode {
  Fence() : StmtNode(StmtKind::kFence) {}
};
// The threads that carry out this code, a block's or a role's, wait for each other: what each has read and
// written before comes before what any of them does after. Thread loops meet at their ends by themselves;
// code in which they do not has these in their place (codegen/cuda/launch.h), and is checked as such
// (Meetings, interpreter.h).
struct Meet : StmtNode {
  Meet() : StmtNode(StmtKind::kMeet) {}
};
// Flags between the roles of different thread blocks: elements of an i32 tensor in memory, which an earlier
// launch sets to 0. Signal raises flags[index], once; Await waits until it is raised, and then sees all that
// the signalling role did before. Blocks may come one after the other, in the order of their numbers: who
// awaits must have a higher number than who signals, or wait forever on a GPU that has no room for both.
struct Signal : StmtNode {
  Signal(Buffer flags, Expr index)
      : StmtNode(StmtKind::kSignal), flags(std::move(flags)), index(std::move(index)) {}
  Buffer flags;
  Expr index;
};
struct Await : StmtNode {
  Await(Buffer flags, Expr index)
      : StmtNode(StmtKind::kAwait), flags(std::move(flags)), index(std::move(index)) {}
  Buffer flags;
  Expr index;
};

// Downcast; the kind must match.
template <typename T>
const T& As(const Stmt& stmt) {
  return static_cast<const T&>(*stmt);
}
template <typename T>
const T* DynAs(const Stmt& stmt) {
  return stmt ? dynamic_cast<const T*>(stmt.get()) : nullptr;
}

Stmt MakeSeq(std::vector<Stmt> stmts);  // flattens nested Seqs and drops nulls; one part is itself

// The children of a statement in order (bodies, parts, arms, roles), and the same statement over other
// children. Null children (an absent else) are left out of Children.
std::vector<Stmt> Children(const Stmt& stmt);
Stmt WithChildren(const Stmt& stmt, std::vector<Stmt> children);
// The statement with each child mapped; the same pointer when `map` returns every child as it is.
Stmt MapChildren(const Stmt& stmt, const std::function<Stmt(const Stmt&)>& map);

// Calls `visit` on every statement, parents first; a false return skips its children.
void VisitStmts(const Stmt& root, const std::function<bool(const Stmt&)>& visit);
bool Contains(const Stmt& root, StmtKind kind);
// Rebuilds bottom-up; `rewrite` returns the replacement or nullptr to keep. Same pointer when nothing
// changed.
Stmt RewriteStmts(const Stmt& root, const std::function<Stmt(const Stmt&)>& rewrite);
// The same statement with every expression in it (not in its children) mapped; `map` returns its argument to
// keep it.
Stmt MapExprs(const Stmt& stmt, const std::function<Expr(const Expr&)>& map);
// MapExprs over the whole tree.
Stmt MapAllExprs(const Stmt& root, const std::function<Expr(const Expr&)>& map);
// Every expression of this one statement.
void ForEachExpr(const Stmt& stmt, const std::function<void(const Expr&)>& visit);
// Every buffer that this one statement reads or writes, some of them several times.
void ForEachBuffer(const Stmt& stmt, const std::function<void(const Buffer&)>& visit);
Stmt SubstituteVars(const Stmt& root, const VarMap& map);
// Replaces a buffer everywhere (allocs, loads, stores, tile views, blocks); `to` has the same shape unless
// `reindex` is given, which maps index vectors. REQUIRES with `reindex`: no tile view of `from` (its strides
// are of the old layout).
Stmt ReplaceBuffer(const Stmt& root, const Buffer& from, const Buffer& to,
                   const std::function<std::vector<Expr>(const std::vector<Expr>&)>& reindex = nullptr);

}  // namespace mycc
