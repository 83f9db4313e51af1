// The loop-and-tile IR: immutable statements, shared by pointer, with value semantics.
//
// Two levels share the nodes. Primitives transform *scheduled* IR: loops around Blocks, where a block is an
// instance of "out[...] = value" or "out[...] (op)= value" over named iteration variables. *Lowered* IR has
// no Blocks: loops, Stores and tile statements, ready for a back end. passes/lower.cc goes from the first to
// the second. The interpreter (interpreter.h) runs both and defines their meaning.
//
// Pipelines are in pipeline_stmts.h, what CPUs alone execute in cpu_stmts.h, marks of loops in loop_marks.h,
// walks over statements in visit.h and stmt_exprs.h. Thread rule: immutable, so free to share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "codegen/expr/expr.h"
#include "codegen/ir/loop_marks.h"
#include "codegen/ir/reduction.h"
#include "codegen/target/instructions.h"

namespace mycc {

enum class StmtKind : uint8_t {
  // Structure.
  kSeq,
  kFor,
  kIf,
  kLet,
  kAlloc,
  kLaunch,
  // Scheduled IR alone.
  kBlock,
  // Work.
  kStore,
  kCombine,
  kMma,
  kCopy,
  kVectors,
  kBypass,
  kTileMove,
  kTileRegion,
  // Pipelines.
  kRoles,
  kArrive,
  kWait,
  kCommitProducts,
  kWaitProducts,
  kCommitGroup,
  kWaitGroup,
  kFence,
  kTurn,
  kBarrier,
  // Between thread blocks.
  kSignal,
  kAwait,
};

struct StmtNode {
  explicit StmtNode(StmtKind kind) : kind(kind) {}
  virtual ~StmtNode() = default;
  // A new statement with the same parts.
  virtual std::shared_ptr<StmtNode> Clone() const = 0;
  const StmtKind kind;
};
using Stmt = std::shared_ptr<const StmtNode>;

// The base of T, which is the only type of its kind.
template <typename T, StmtKind kOwnKind>
struct StmtOf : StmtNode {
  static constexpr StmtKind kKind = kOwnKind;
  StmtOf() : StmtNode(kKind) {}
  std::shared_ptr<StmtNode> Clone() const override {
    return std::make_shared<T>(static_cast<const T&>(*this));
  }
};

// Runs its parts in order.
struct Seq : StmtOf<Seq, StmtKind::kSeq> {
  explicit Seq(std::vector<Stmt> stmts) : stmts(std::move(stmts)) {}
  std::vector<Stmt> stmts;
};

// The parts of a loop that replace those of another; null parts do not.
struct ForParts {
  Var var = nullptr;
  Expr extent = nullptr;
  std::optional<LoopKind> loop_kind = std::nullopt;
  Stmt body = nullptr;
};

// for var in [0, extent). `extent` <= var->extent always: the loop of a tail is shorter than its variable's
// range.
//
// A new loop has no marks. A loop in place of another is made by With, so that it keeps them.
struct For : StmtOf<For, StmtKind::kFor> {
  For(Var var, Expr extent, LoopKind loop_kind, Stmt body)
      : var(std::move(var)), extent(std::move(extent)), loop_kind(loop_kind), body(std::move(body)) {}
  // This loop with other parts.
  std::shared_ptr<const For> With(ForParts parts) const;
  // This loop with other marks.
  std::shared_ptr<const For> Marked(LoopMarks changed) const;

  Var var;
  Expr extent;
  LoopKind loop_kind;
  Stmt body;
  LoopMarks marks;
};

struct If : StmtOf<If, StmtKind::kIf> {
  If(Expr condition, Stmt then, Stmt otherwise = nullptr)
      : condition(std::move(condition)), then(std::move(then)), otherwise(std::move(otherwise)) {}
  Expr condition;
  Stmt then;
  Stmt otherwise;  // may be null
};

// Inside `body`, `var` has this value. REQUIRES: the value is in the variable's range.
struct Let : StmtOf<Let, StmtKind::kLet> {
  Let(Var var, Expr value, Stmt body) : var(std::move(var)), value(std::move(value)), body(std::move(body)) {}
  Var var;
  Expr value;
  Stmt body;
};

// A GPU's registers for the elements of a thread's array of a narrow float.
enum class RegisterForm : uint8_t {
  kOfType,
  kWide,   // with more precision than the type, to which reads round
  kPairs,  // two neighbouring elements in one register
};

// The buffer exists inside `body`, uninitialised at its start. Inside a parallel loop each iteration has its
// own.
struct Alloc : StmtOf<Alloc, StmtKind::kAlloc> {
  Alloc(Buffer buffer, Stmt body, int64_t offset = kNoOffset)
      : buffer(std::move(buffer)), body(std::move(body)), offset(offset) {}
  static constexpr int64_t kNoOffset = -1;
  static constexpr int64_t kAllColumns = -1;
  Buffer buffer;
  Stmt body;
  // On a CPU: nothing reads elements of the last dimension from this index on. Set by the pass place_locals.
  int64_t read_columns = kAllColumns;
  // On a GPU, of an array in registers. Set by the pass place_registers.
  RegisterForm registers = RegisterForm::kOfType;
  // The buffer's first byte in the shared memory of its thread block; kNoOffset before the pass place_shared,
  // and for buffers that are not in shared memory.
  int64_t offset;
};

// The size of a launch, and its relation to its neighbours.
struct LaunchShape {
  int64_t grid = 1;     // thread blocks
  int64_t threads = 1;  // of a block: whole warps
  // Thread blocks of one cluster: the iterations of the outermost grid loop (multicast), or the blocks that
  // execute each grid iteration together.
  int64_t cluster = 1;
  int64_t cluster_reduce = 1;     // blocks that execute each iteration together
  int64_t min_blocks_per_sm = 0;  // blocks that must fit on an SM at the same time; 0: no limit
  int64_t shared_bytes = 0;       // of a block's shared memory
  bool after_launch = false;      // may overlap with the launch before it
  bool before_launch = false;     // may overlap with the launch after it
  // The first bytes of the parts of shared memory that follow the buffers: values that threads combine across
  // warps, values that the blocks of a reducing cluster send each other, and barriers.
  int64_t scratch_offset = 0, received_offset = 0, barriers_offset = 0;
};

// One launch of a GPU's kernel. The body is a nest of grid loops around the code of a thread block. Lowered
// code for a GPU is a sequence of launches. Threads in a launch synchronize at Barrier statements, not where
// their loops end.
struct Launch : StmtOf<Launch, StmtKind::kLaunch> {
  Launch(LaunchShape shape, Stmt body) : shape(shape), body(std::move(body)) {}
  LaunchShape shape;
  Stmt body;
};

// One iteration variable of a block. Its domain is [0, var->extent). Its value is `binding`, an expression
// over the enclosing loops.
struct IterVar {
  Var var;
  bool reduce = false;
  Expr binding;
};

// An accumulator of a reduction of tuples, and the part of the value that is merged into it.
struct Accumulator {
  Buffer buffer;
  Expr value;
};

// out[indices] = value (reduce == kNone) or out[indices] = combine(out[indices], value). `indices` and
// `value` are over iteration variables and, for buffers that were moved into a loop, over the enclosing
// loops' variables (the offset of the region).
//
// An instance whose binding lies outside the iteration domain is not executed. This keeps splits that do not
// divide, and regions that reach past an edge, correct; lowering derives its guards from it. A reduction with
// init == true stores the identity into out[indices] before all its other instances: in the first iteration
// of the loops that carry the reduction, even if that one is not executed. With init == false another block
// has filled the accumulator.
//
// A reduction of tuples (reduction.h) merges several values at once: `value` and those of `more` are the
// parts of a partial result, `out` and the buffers of `more` the accumulators, all at `indices`.
struct Block : StmtOf<Block, StmtKind::kBlock> {
  std::string name;  // unique in the function
  std::vector<IterVar> iters;
  Buffer out;
  std::vector<Expr> indices;
  Expr value;
  Reduction reduce;
  bool init = false;
  std::vector<Accumulator> more;  // of a tuple: the second and further ones

  bool Writes(const Buffer& buffer) const;
  // Calls `visit` on each value.
  template <typename VisitFn>
  void ForEachValue(const VisitFn& visit) const {
    visit(value);
    for (const Accumulator& accumulator : more) visit(accumulator.value);
  }
  // Replaces each value by `map` of it.
  template <typename MapFn>
  void MapValues(const MapFn& map) {
    value = map(value);
    for (Accumulator& accumulator : more) accumulator.value = map(accumulator.value);
  }
};

// Elements of an input that lie `elements` after those that `load` reads.
struct ReadAhead {
  Expr load;
  int64_t elements;
};

struct Store : StmtOf<Store, StmtKind::kStore> {
  Store(Buffer buffer, std::vector<Expr> indices, Expr value)
      : buffer(std::move(buffer)), indices(std::move(indices)), value(std::move(value)) {}
  Buffer buffer;
  std::vector<Expr> indices;
  Expr value;
  // On a CPU, of vectors of lanes; set by the last passes. Each vector prefetches these.
  std::vector<ReadAhead> fetches;
  // In a loop that turns tiles (LaneForm::kTurns), the loads of the value that come from turned tiles.
  std::vector<Expr> turned;
  // In a Bypass (cpu_stmts.h), vectors of up to this number of lanes bypass the caches. The position of a
  // vector's first lane is a multiple of its lanes. 0: none does.
  int64_t bypass_lanes = 0;
  // The value is rounded to bf16, and all its readers treat subnormal numbers as zero: so may the rounding.
  bool flushes = false;
};

// An exchange of values between `extent` threads, `stride` apart.
enum class ExchangeKind : uint8_t {
  kLanes,    // of one warp, by shuffles, in log2(extent) rounds
  kWarp,     // of a block of one warp, by shuffles, one thread after the other
  kWarps,    // the result of each whole warp, through shared memory
  kThreads,  // of a block, through shared memory, one thread after the other
  kBlocks,   // the results of whole blocks of a reducing cluster, by messages
};
struct Exchange {
  ExchangeKind kind;
  int64_t stride, extent;
};

// Threads that combine an element: `extent` of them, `stride` apart. The first one adds the element's earlier
// value, and stores the result of an element in memory.
struct CombineGroup {
  int64_t stride, extent;
  std::vector<Exchange> exchanges;
};
inline bool CrossesWarps(const CombineGroup& group) {
  for (const Exchange& exchange : group.exchanges) {
    if (exchange.kind == ExchangeKind::kWarps || exchange.kind == ExchangeKind::kThreads) return true;
  }
  return false;
}
// The buffers for the partial results that the blocks of a reducing cluster send each other; each has a
// barrier.
inline constexpr int64_t kReceiveBuffers = 2;
// The bytes of one value while threads exchange it: in registers narrow types are as wide as f32.
inline int64_t ExchangedBytes(const Buffer& buffer) { return std::max(4, DTypeBytes(buffer->dtype)); }

// buffer[indices] = combine(buffer[indices], value), together for all iterations of the enclosing thread
// loops: iterations that name the same element all contribute to it, and all see the result. Lowering makes
// these of reductions carried by thread loops. It synchronizes the threads. For tuples, `more` holds the
// further accumulators, as in a Block.
struct Combine : StmtOf<Combine, StmtKind::kCombine> {
  Combine(Reduction reduce, Buffer buffer, std::vector<Expr> indices, Expr value)
      : reduce(std::move(reduce)),
        buffer(std::move(buffer)),
        indices(std::move(indices)),
        value(std::move(value)) {}
  // Calls `visit` on each accumulator's buffer.
  template <typename VisitFn>
  void ForEachBuffer(const VisitFn& visit) const {
    visit(buffer);
    for (const Accumulator& accumulator : more) visit(accumulator.buffer);
  }

  Reduction reduce;
  Buffer buffer;
  std::vector<Expr> indices;
  Expr value;
  std::vector<Accumulator> more;
  // Set by the pass place_combines.
  std::vector<CombineGroup> groups;
  Expr condition;         // where it is false, threads take part and change nothing; null for none
  bool together = false;  // with the other elements of the loop around, through shared memory
};

// A two-dimensional view of a buffer for tile statements: element (p, q) is at buffer[indices] displaced by p
// * row_stride + q * col_stride elements.
struct TileView {
  Buffer buffer;
  std::vector<Expr> indices;  // of element (0, 0)
  int64_t row_stride = 0;
  int64_t col_stride = 0;
  // Blocks of `block_rows` rows begin `block_stride` elements apart, such as the pixels of several rows of an
  // image. 0: all rows are `row_stride` apart.
  int64_t block_rows = 0;
  int64_t block_stride = 0;

  // Elements from row 0 to row i.
  int64_t Row(int64_t i) const {
    return block_rows == 0 ? i * row_stride : i / block_rows * block_stride + i % block_rows * row_stride;
  }
};

// acc(i, j) += sum over p < k of a(i, p) * b(p, j), for i < m and j < n; acc(i, j) = that sum, for a product
// that is `first`, whatever acc held before: one or several hardware instructions of the table row
// `instruction`. Products and sums are in acc's type; mma.tf32 rounds a and b as tf32() does.
//
// With a `group` of g, g consecutive elements of the depth lie next to each other in a and in b (a lane of a
// dot-product instruction multiplies them at once). Then the strides of a's columns and of b's rows are
// between groups, and element p is the (p % g)-th of its group.
//
// An asynchronous product (wgmma) runs on after the statement. It belongs to the group of products that is
// committed next (pipeline_stmts.h). Until its role has waited for that group it reads a and b, and writes
// acc: to write a or b, to access acc, or to let another role overwrite a or b, is a race. Products of one
// role into one accumulator run in the order in which they begin.
struct Mma : StmtOf<Mma, StmtKind::kMma> {
  Mma(std::string instruction, int64_t m, int64_t n, int64_t k, TileView acc, TileView a, TileView b,
      WarpGrid warps = {}, int64_t group = 1)
      : instruction(std::move(instruction)),
        m(m),
        n(n),
        k(k),
        acc(std::move(acc)),
        a(std::move(a)),
        b(std::move(b)),
        warps(warps),
        group(group) {}
  // The instruction's row; null where the table has none.
  const Instruction* row() const { return InstructionNamed(instruction); }
  bool rounds_to_tf32() const { return row() != nullptr && row()->rounds_itself(); }
  bool of_warpgroups() const { return row() != nullptr && row()->of_warpgroups(); }
  // The number of a GPU's threads that execute it together.
  int64_t threads() const {
    return row() == nullptr ? 1 : int64_t{row()->threads} * warps.rows * warps.columns;
  }
  std::string instruction;
  int64_t m, n, k;
  TileView acc, a, b;
  WarpGrid warps;      // on tensor cores: the division of the tile
  bool first = false;  // of a sum of products; on tensor cores alone
  int64_t group;
  bool is_async = false;
  // On a CPU: the distance in elements from an operand's read to its prefetch; 0: no prefetch.
  int64_t a_ahead = 0, b_ahead = 0;
  bool fetches_sums = false;  // the memory of the sums is prefetched for writing before they are computed
  // In a TileRegion (cpu_stmts.h): a and b are the same in all its iterations. Tiles that are copied, because
  // they are less deep than the region, are copied before it.
  bool is_fixed = false;
};

// A copy of the statement, after `change` has edited it.
template <typename T, typename Change>
Stmt Changed(const T& stmt, const Change& change) {
  auto copy = std::make_shared<T>(stmt);
  change(copy.get());
  return copy;
}

// Downcast; the kind must match.
template <typename T>
const T& As(const Stmt& stmt) {
  return static_cast<const T&>(*stmt);
}
// The same of a node, as const as it is.
template <typename T, typename Node>
auto& NodeAs(Node& node) {
  return static_cast<std::conditional_t<std::is_const_v<Node>, const T, T>&>(node);
}
// Null for a statement of another kind.
template <typename T>
const T* DynAs(const Stmt& stmt) {
  return stmt != nullptr && stmt->kind == T::kKind ? &As<T>(stmt) : nullptr;
}

// New loops around `body`, outermost first.
struct LoopSpec {
  Var var;
  LoopKind kind = LoopKind::kSerial;
};
Stmt MakeNest(const std::vector<LoopSpec>& loops, Stmt body);
// The loops of a perfect nest, outermost first, those of one kind if it is given; they live as long as
// `nest`. `inside`, another statement than `nest`, becomes the code in them.
std::vector<const For*> LoopsOfNest(const Stmt& nest, Stmt* inside,
                                    std::optional<LoopKind> kind = std::nullopt);
// The iterations of nested loops; the number of an iteration of all of them; the loops, outermost first,
// around another body; Allocs of the buffers around it.
int64_t IterationsOf(const std::vector<const For*>& loops);
Expr IterationNumber(const std::vector<const For*>& loops);
Stmt InLoops(const std::vector<const For*>& loops, Stmt body);
Stmt InAllocs(const std::vector<Buffer>& buffers, Stmt body);
Stmt MakeSeq(std::vector<Stmt> stmts);  // flattens nested Seqs and drops nulls; one part is itself
// The parts of a sequence; another statement is its only part.
std::vector<Stmt> StmtsOf(const Stmt& stmt);

}  // namespace mycc
