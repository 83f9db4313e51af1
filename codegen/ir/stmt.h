// The loop-and-tile IR: immutable statements, shared by pointer, with value semantics.
//
// Two levels share the nodes. Primitives transform *scheduled* IR: loops around Blocks, where a block is an
// instance of "out[...] = value" or "out[...] (op)= value" over named iteration variables. *Lowered* IR has
// no Blocks: loops, Stores and tile statements, ready for a back end. passes/lower.cc goes from the first to
// the second. The interpreter (interpreter.h) runs both and defines their meaning.
//
// Pipelines are in pipeline_stmts.h, marks of loops in loop_marks.h, walks over statements in visit.h and
// stmt_exprs.h. Thread rule: immutable, so free to share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codegen/expr/expr.h"
#include "codegen/ir/loop_marks.h"

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
  const StmtKind kind;
};
using Stmt = std::shared_ptr<const StmtNode>;

// Runs its parts in order.
struct Seq : StmtNode {
  explicit Seq(std::vector<Stmt> stmts) : StmtNode(StmtKind::kSeq), stmts(std::move(stmts)) {}
  std::vector<Stmt> stmts;
};

// for var in [0, extent). `extent` <= var->extent always: the loop of a tail is shorter than its variable's
// range.
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

// Inside `body`, `var` has this value. REQUIRES: the value is in the variable's range.
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

// One iteration variable of a block. Its domain is [0, var->extent). Its value is `binding`, an expression
// over the enclosing loops.
struct IterVar {
  Var var;
  bool reduce = false;
  Expr binding;
};

// out[indices] = value (reduce == kNone) or out[indices] = combine(out[indices], value). `indices` and
// `value` are over iteration variables and, for buffers that were moved into a loop, over the enclosing
// loops' variables (the offset of the region).
//
// An instance whose binding lies outside the iteration domain is not executed. This keeps splits that do not
// divide, and regions that reach past an edge, correct; lowering derives its guards from it. A reduction with
// init == true stores the identity into out[indices] before all its other instances, at the one in which all
// reduction variables are 0, even if that one is not executed. With init == false another block has filled
// the accumulator. argmax and argmin compare `value`, and store the lowest position of the best one along the
// single reduction variable; `arg_value`, a buffer like `out` with value's type, holds the best value so far.
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

// buffer[indices] = combine(buffer[indices], value), together for all iterations of the enclosing thread
// loops: iterations that name the same element all contribute to it, and all see the result. Lowering makes
// these of reductions carried by thread loops. It synchronizes the threads.
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
  // The number of a GPU's threads that execute it together.
  int64_t threads() const {
    const int64_t warps_of_row = instruction.starts_with("wgmma.") ? 4 : 1;
    return 32 * warps_of_row * warps.rows * warps.columns;
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

}  // namespace mycc
