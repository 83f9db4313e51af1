// Turns loops that are marked with a CPU instruction into Mma statements.
//
//   for k in 256 by fma.f32:                     for k.o in 64:
//     for i in 6: for j in 16:              ->     mma fma.f32 6x16x4: acc += a[.., k.o*4] * b[k.o*4, ..]
//       acc[i, j] = acc[i, j] + a[i, k] * b[k, j]
//
// The loop that is contiguous in the accumulator and in one operand becomes n. A loop that strides through
// the accumulator and the other operand becomes m, and the innermost reduction loop k. The other loops stay
// around the statement: reductions as loops, in their order; the rest unrolled, such as rows at unequal
// distances in memory (pixels of a fused image).
//
// Instructions that multiply groups of the depth have one more loop, over a group's elements; guards may have
// shortened it.
#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/product_nest.h"
#include "codegen/schedule/tree.h"
#include "codegen/target/instructions.h"

namespace mycc {
namespace {

// The number of steps of a long reduction in one Mma; a loop around it has the rest.
constexpr int64_t kMaxDepth = 8;
constexpr int64_t kDepth = 4;

using Dim = ProductLoop;
using Stride = std::optional<int64_t>;

// The loop without the marks of its instruction, which is in the statement or which none executes.
std::shared_ptr<const For> Unmarked(const For& loop) {
  LoopMarks marks = loop.marks;
  marks.instruction.clear();
  marks.warps = {};
  marks.rows_ahead = marks.lanes_ahead = 0;
  marks.fetches_sums = false;
  return loop.Marked(std::move(marks));
}

class ProductLoops {
 public:
  ProductLoops(const ProductNest& product, const Instruction& instruction)
      : instruction_(instruction), product_(product), group_(FindGroup()) {}

  // Null where the groups are incomplete.
  Stmt ToMma() {
    if (!HasWholeGroups()) return nullptr;
    ChooseLanes();
    for (const Dim& dim : product_.loops) {
      if (dim.is_reduction()) {
        if (dim.x && dim.y && &dim != group_) k_ = &dim;
      } else if (IsRow(dim) && (m_ == nullptr || dim.extent > m_->extent)) {
        m_ = &dim;
      }
    }
    if (instruction_.in_tiles()) FindBlocks();
    std::vector<const Dim*> reductions;
    for (const Dim& dim : product_.loops) {
      if (&dim == k_) continue;
      if (&dim == lanes_ || &dim == m_ || &dim == group_ || &dim == blocks_ || dim.extent == 1) {
        first_[dim.loop->var.get()] = IntConst(0);
      } else {
        (dim.is_reduction() ? reductions : others_).push_back(&dim);
      }
    }
    return Around(reductions, LoopKind::kSerial, AlongDepth());
  }

 private:
  // The loop over the elements of a group; null when a guard has left only one element.
  const Dim* FindGroup() const {
    const Dim& last = product_.loops.back();
    const bool is_group = instruction_.group > 1 && last.is_reduction() && last.x == 1 && last.y == 1 &&
                          last.extent <= instruction_.group;
    return is_group ? &last : nullptr;
  }
  int64_t GroupExtent() const { return group_ ? group_->extent : 1; }

  // An incomplete group must be the only one.
  bool HasWholeGroups() const {
    int64_t depth = 1;
    for (const Dim& dim : product_.loops) depth *= dim.is_reduction() ? dim.extent : 1;
    return GroupExtent() == instruction_.group || depth == GroupExtent();
  }

  // Lanes run along the longest loop that is contiguous in the accumulator and in one operand, and does not
  // move the other. When tails left no such loop, the statement is one column wide, and a is the operand that
  // changes with the rows.
  void ChooseLanes() {
    for (const Dim& dim : product_.loops) {
      if (dim.acc != 1) continue;
      const int64_t step = instruction_.group;
      const bool x_is_b = dim.x == step && dim.y == 0, y_is_b = dim.y == step && dim.x == 0;
      if ((!x_is_b && !y_is_b) || (lanes_ != nullptr && lanes_->extent >= dim.extent)) continue;
      lanes_ = &dim;
      swapped_ = x_is_b;
    }
    if (lanes_ != nullptr) return;
    swapped_ = std::ranges::any_of(product_.loops,
                                   [](const Dim& dim) { return dim.acc != 0 && dim.x == 0 && dim.y != 0; });
  }

  bool IsRow(const Dim& dim) const { return !dim.is_reduction() && &dim != lanes_ && A(dim) && B(dim) == 0; }

  // The loop over blocks of rows: another loop of a, whose sums come after those of the rows. Tiles of
  // several blocks share the tiles of b. Rows are the longest loop that has blocks, or the longest of all.
  void FindBlocks() {
    int64_t longest = 1;
    for (const Dim& row : product_.loops) {
      for (const Dim& block : product_.loops) {
        if (!IsRow(row) || !IsRow(block) || block.extent == 1 || block.acc != row.extent * row.acc ||
            row.extent <= longest)
          continue;
        longest = row.extent;
        m_ = &row;
        blocks_ = &block;
      }
    }
  }

  Stride A(const Dim& dim) const { return swapped_ ? dim.y : dim.x; }
  Stride B(const Dim& dim) const { return swapped_ ? dim.x : dim.y; }

  static Stmt Around(const std::vector<const Dim*>& dims, LoopKind kind, Stmt body) {
    for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim)
      body = Unmarked(*(*dim)->loop)->With({.loop_kind = kind, .body = std::move(body)});
    return body;
  }

  // Steps of k, each of one group. A short k is one statement; a long one is a loop over kDepth steps and a
  // statement for the remaining ones. A tile's instruction takes as many steps as it can.
  Stmt AlongDepth() const {
    const int64_t depth = k_ ? k_->extent : 1;
    const int64_t most = instruction_.in_tiles() ? instruction_.k / instruction_.group : kMaxDepth;
    if (depth <= most) return Steps(IntConst(0), depth);
    const Var step = MakeVar(absl::StrCat(k_->loop->var->name, ".o"), depth / kDepth);
    const Stmt loop = Unmarked(*k_->loop)->With({.var = step,
                                                 .extent = IntConst(step->extent),
                                                 .loop_kind = LoopKind::kSerial,
                                                 .body = Steps(VarRef(step) * kDepth, kDepth)});
    if (depth % kDepth == 0) return loop;
    const Stmt rest = Steps(IntConst(depth / kDepth * kDepth), depth % kDepth);
    return MakeSeq({loop, CopyWithSuffix(rest, ".rest")});
  }

  // Loops that stay inside a step are unrolled for each step, so that all of them use a row of b in
  // registers.
  Stmt Steps(const Expr& begin, int64_t depth) const {
    if (others_.empty() || depth == 1) return Around(others_, LoopKind::kUnroll, MakeMma(begin, depth));
    const Var step = MakeVar(absl::StrCat(k_->loop->var->name, ".u"), depth);
    const Stmt body = Around(others_, LoopKind::kUnroll, MakeMma(begin + VarRef(step), 1));
    return std::make_shared<For>(step, IntConst(depth), LoopKind::kUnroll, body);
  }

  Stmt MakeMma(const Expr& begin, int64_t depth) const {
    VarMap first = first_;
    if (k_) first[k_->loop->var.get()] = begin;
    const ExprNode &a = swapped_ ? *product_.y : *product_.x, &b = swapped_ ? *product_.x : *product_.y;
    auto mma = std::make_shared<Mma>(
        instruction_.name, (m_ ? m_->extent : 1) * (blocks_ ? blocks_->extent : 1),
        lanes_ ? lanes_->extent : 1, depth * GroupExtent(), ViewAt(*product_.acc, first, m_ ? m_->acc : 0, 1),
        ViewAt(a, first, m_ ? *A(*m_) : 0, k_ ? *A(*k_) : 0),
        ViewAt(b, first, k_ ? *B(*k_) : 0, instruction_.group), WarpGrid{}, instruction_.group);
    if (blocks_) {
      mma->a.block_rows = m_->extent;
      mma->a.block_stride = *A(*blocks_);
    }
    // After a depth of one step comes the next place of a window, whose elements lie next.
    const Dim& steps = product_.loops.front();
    const LoopMarks& marks = steps.loop->marks;
    const auto ahead = [&](const Stride& step, int64_t group_stride) {
      return steps.extent == 1 ? mma->k / instruction_.group * group_stride : step.value_or(0);
    };
    mma->a_ahead = marks.rows_ahead * ahead(A(steps), mma->a.col_stride);
    mma->b_ahead = marks.lanes_ahead * ahead(B(steps), mma->b.row_stride);
    mma->fetches_sums = marks.fetches_sums;
    return mma;
  }

  const Instruction& instruction_;
  const ProductNest& product_;
  const Dim* const group_;
  const Dim *m_ = nullptr, *k_ = nullptr, *lanes_ = nullptr, *blocks_ = nullptr;
  bool swapped_ = false;            // b is x
  std::vector<const Dim*> others_;  // loops around the statement that are no reductions
  VarMap first_;                    // 0 for loops of one iteration, and for those in the statement but k
};

// The nest with the condition around its body moved around the whole nest. nullptr: there is no condition, or
// it depends on a loop of the nest.
Stmt ConditionOutside(const Stmt& nest) {
  Stmt inside;
  const std::vector<const For*> loops = LoopsOfNest(nest, &inside);
  const If* branch = DynAs<If>(inside);
  if (branch == nullptr || branch->otherwise || UsesAnyOf(branch->condition, LoopVarsUnder(nest)))
    return nullptr;
  return std::make_shared<If>(branch->condition, InLoops(loops, branch->then));
}

// A guard may have cut the nest into several; each is converted by itself. Loops that no instruction can
// execute stay.
Stmt Tensorized(const Stmt& stmt, const Instruction& instruction) {
  const auto inside = [&](const Stmt& child) { return Tensorized(child, instruction); };
  const For* loop = DynAs<For>(stmt);
  // Only a guard and its parts belong to the nest: compute_at may have moved other computations into it.
  const bool is_cut = stmt->kind == StmtKind::kIf || stmt->kind == StmtKind::kSeq;
  if (loop == nullptr) return is_cut ? MapChildren(stmt, inside) : stmt;
  if (const absl::StatusOr<ProductNest> product = ProductNestOf(*loop, /*guarded=*/false); product.ok()) {
    if (Stmt mma = ProductLoops(*product, instruction).ToMma()) return mma;
  }
  if (const Stmt outside = ConditionOutside(stmt)) return inside(outside);
  return Unmarked(*loop)->With({.body = inside(loop->body)});
}

}  // namespace

absl::StatusOr<Stmt> TensorizeLoops(const Stmt& body, const Target& target) {
  return TryRewriteEach<For>(body, [&](const For& loop) -> absl::StatusOr<Stmt> {
    if (loop.marks.instruction.empty()) return nullptr;
    MYCC_ASSIGN_OR_RETURN(const Instruction instruction, FindInstruction(loop.marks.instruction, target));
    return Tensorized(loop.With({}), instruction);
  });
}

}  // namespace mycc
