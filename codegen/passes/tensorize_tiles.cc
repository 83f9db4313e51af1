// Turns loops that are marked with a tensor-core instruction into one Mma statement over the whole tile.
//
//   for i in 128 by wgmma.bf16:                          mma wgmma.bf16 128x256x64: acc += a * b
//     for j in 256: for k in 64:                   ->
//       acc[i, j] = acc[i, j] + f32(a[i, k]) * f32(b[j, k])
//
// Several loops may run along the rows (the pixels of an image), the columns or the depth, as long as they
// step through the accumulator and the operand as one loop would. The guards of tails are dropped: the
// operands are complete tiles in shared memory, zero beyond a reduction's end, and accumulator elements
// beyond the tensor's edge are never read.
#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/expr/affine.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

struct TileDim {
  const For* loop;
  int64_t extent;
  int64_t acc, x, y;  // elements that a step moves
};

// Several loops that step like one loop of `extent` steps.
struct Merged {
  int64_t extent = 1, acc = 0, x = 0, y = 0;
};

absl::Status Refuse(const std::string& loop, const std::string& why) {
  return absl::FailedPreconditionError(absl::StrCat("loop ", loop, " cannot be tensorized: ", why));
}

// The load inside a cast or tf32(): the instruction itself widens or rounds.
const ExprNode* LoadUnderCast(const Expr& expr) {
  const Expr& load = expr->op == Op::kCast || expr->op == Op::kTF32 ? expr->args[0] : expr;
  return load->op == Op::kLoad ? load.get() : nullptr;
}

Expr FlatIndex(const ExprNode& load) {
  Expr flat = IntConst(0);
  for (size_t d = 0; d < load.args.size(); ++d)
    flat = flat + load.args[d] * load.buffer->stride(static_cast<int>(d));
  return Simplify(flat);
}

class TileNest {
 public:
  static absl::StatusOr<Stmt> Lower(const For& marked) {
    TileNest nest;
    nest.name_ = marked.var->name;
    nest.instruction_ = marked.marks.instruction;
    nest.warps_ = marked.marks.warps;
    absl::Status status = nest.Match(marked);
    if (!status.ok()) return status;
    return nest.ToMma();
  }

 private:
  absl::Status Match(const For& marked) {
    const For* loop = &marked;
    std::vector<const For*> loops;
    for (;; loop = DynAs<For>(loop->body)) {
      if (!ConstExtent(*loop))
        return Refuse(name_, absl::StrCat("loop ", loop->var->name, " has no constant extent"));
      loops.push_back(loop);
      if (loop->body->kind != StmtKind::kFor) break;
    }
    Stmt inner = loop->body;
    if (const If* guard = DynAs<If>(inner)) inner = guard->then;
    const Store* store = DynAs<Store>(inner);
    if (store == nullptr || !MatchStore(*store))
      return Refuse(name_, "it is not a nest around a sum of products");
    const Expr acc = FlatIndex(*acc_), x = FlatIndex(*x_), y = FlatIndex(*y_);
    for (const For* l : loops) {
      const VarNode* var = l->var.get();
      const auto a = SplitLinear(acc, var), p = SplitLinear(x, var), q = SplitLinear(y, var);
      if (!a || !p || !q) return Refuse(name_, absl::StrCat("loop ", var->name, " does not step evenly"));
      dims_.push_back(TileDim{l, *ConstExtent(*l), a->coefficient, p->coefficient, q->coefficient});
    }
    return absl::OkStatus();
  }

  bool MatchStore(const Store& store) {
    const Expr& sum = store.value;
    if (sum->op != Op::kAdd || sum->args[1]->op != Op::kMul || sum->args[0]->op != Op::kLoad) return false;
    acc_ = sum->args[0].get();
    x_ = LoadUnderCast(sum->args[1]->args[0]);
    y_ = LoadUnderCast(sum->args[1]->args[1]);
    return x_ != nullptr && y_ != nullptr && acc_->buffer == store.buffer;
  }

  // Combines the loops of one kind into one, the outermost (largest step of the accumulator, or of x) first;
  // nullopt when they do not step like one loop.
  std::optional<Merged> Merge(std::vector<const TileDim*> dims) const {
    std::stable_sort(dims.begin(), dims.end(), [](const TileDim* a, const TileDim* b) {
      return std::max(a->acc, a->x) > std::max(b->acc, b->x);
    });
    Merged merged;
    for (auto it = dims.rbegin(); it != dims.rend(); ++it) {
      const TileDim& dim = **it;
      if (merged.extent == 1) {
        merged = Merged{dim.extent, dim.acc, dim.x, dim.y};
        continue;
      }
      if (dim.acc != merged.acc * merged.extent || dim.x != merged.x * merged.extent ||
          dim.y != merged.y * merged.extent)
        return std::nullopt;
      merged.extent *= dim.extent;
    }
    return merged;
  }

  absl::StatusOr<Stmt> ToMma() const {
    std::vector<const TileDim*> along_x, along_y, depth;
    for (const TileDim& dim : dims_) {
      if (dim.extent == 1) continue;
      if (dim.acc == 0) {
        depth.push_back(&dim);
      } else if (dim.x != 0 && dim.y != 0) {
        return Refuse(name_, absl::StrCat("loop ", dim.loop->var->name, " steps through both operands"));
      } else {
        (dim.x != 0 ? along_x : along_y).push_back(&dim);
      }
    }
    // The loops that are contiguous in the accumulator are the columns.
    const auto contiguous = [](const TileDim* dim) { return dim->acc == 1; };
    const bool columns_are_x = std::any_of(along_x.begin(), along_x.end(), contiguous);
    const auto rows = Merge(columns_are_x ? along_y : along_x),
               columns = Merge(columns_are_x ? along_x : along_y), steps = Merge(depth);
    if (!rows || !columns || !steps)
      return Refuse(name_, "its loops along rows, columns or depth do not step as one loop");
    const ExprNode &a = columns_are_x ? *y_ : *x_, &b = columns_are_x ? *x_ : *y_;
    const auto step = [&](const Merged& m, bool of_a) { return of_a == columns_are_x ? m.y : m.x; };
    return Stmt(std::make_shared<Mma>(instruction_, rows->extent, columns->extent, steps->extent,
                                      View(*acc_, rows->acc, columns->acc),
                                      View(a, step(*rows, true), step(*steps, true)),
                                      View(b, step(*steps, false), step(*columns, false)), warps_));
  }

  TileView View(const ExprNode& load, int64_t row_stride, int64_t col_stride) const {
    VarMap first;
    for (const TileDim& dim : dims_) first[dim.loop->var.get()] = IntConst(0);
    TileView view{load.buffer, {}, row_stride, col_stride};
    for (const Expr& index : load.args) view.indices.push_back(Simplify(Substitute(index, first)));
    return view;
  }

  std::string name_, instruction_;
  WarpGrid warps_;
  std::vector<TileDim> dims_;
  const ExprNode* acc_ = nullptr;
  const ExprNode* x_ = nullptr;
  const ExprNode* y_ = nullptr;
};

}  // namespace

absl::StatusOr<Stmt> TensorizeTiles(const Stmt& body) {
  absl::Status status;
  Stmt result = RewriteStmts(body, [&](const Stmt& stmt) -> Stmt {
    const For* loop = DynAs<For>(stmt);
    if (loop == nullptr || loop->marks.instruction.empty() || !status.ok()) return nullptr;
    absl::StatusOr<Stmt> mma = TileNest::Lower(*loop);
    status.Update(mma.status());
    return mma.ok() ? *mma : nullptr;
  });
  if (!status.ok()) return status;
  return result;
}

}  // namespace mycc
