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

#include "base/status.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/product_nest.h"

namespace mycc {
namespace {

// Several loops that step like one loop of `extent` steps.
struct Merged {
  int64_t extent = 1, acc = 0, x = 0, y = 0;
};

template <typename... Parts>
absl::Status Refuse(const std::string& loop, const Parts&... why) {
  return Refusal("loop ", loop, " cannot be tensorized: ", why...);
}

class TileNest {
 public:
  static absl::StatusOr<Stmt> Lower(const For& marked) {
    TileNest nest;
    nest.name_ = marked.var->name;
    nest.instruction_ = marked.marks.instruction;
    nest.warps_ = marked.marks.warps;
    MYCC_RETURN_IF_ERROR(nest.Match(marked));
    return nest.ToMma();
  }

 private:
  absl::Status Match(const For& marked) {
    absl::StatusOr<ProductNest> product = ProductNestOf(marked, /*guarded=*/true);
    if (!product.ok()) return Refuse(name_, product.status().message());
    product_ = *std::move(product);
    for (const ProductLoop& loop : product_.loops) {
      if (!loop.x || !loop.y) return Refuse(name_, "loop ", loop.loop->var->name, " does not step evenly");
    }
    return absl::OkStatus();
  }

  // Combines the loops of one kind into one, the outermost (largest step of the accumulator, or of x) first;
  // nullopt when they do not step like one loop.
  std::optional<Merged> Merge(std::vector<const ProductLoop*> dims) const {
    std::stable_sort(dims.begin(), dims.end(), [](const ProductLoop* a, const ProductLoop* b) {
      return std::max(a->acc, *a->x) > std::max(b->acc, *b->x);
    });
    Merged merged;
    for (auto it = dims.rbegin(); it != dims.rend(); ++it) {
      const ProductLoop& dim = **it;
      if (merged.extent == 1) {
        merged = Merged{dim.extent, dim.acc, *dim.x, *dim.y};
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
    std::vector<const ProductLoop*> along_x, along_y, depth;
    for (const ProductLoop& dim : product_.loops) {
      if (dim.extent == 1) continue;
      if (dim.acc == 0) {
        depth.push_back(&dim);
      } else if (dim.x != 0 && dim.y != 0) {
        return Refuse(name_, "loop ", dim.loop->var->name, " steps through both operands");
      } else {
        (dim.x != 0 ? along_x : along_y).push_back(&dim);
      }
    }
    // The loops that are contiguous in the accumulator are the columns.
    const auto contiguous = [](const ProductLoop* dim) { return dim->acc == 1; };
    const bool columns_are_x = std::any_of(along_x.begin(), along_x.end(), contiguous);
    const auto rows = Merge(columns_are_x ? along_y : along_x),
               columns = Merge(columns_are_x ? along_x : along_y), steps = Merge(depth);
    if (!rows || !columns || !steps)
      return Refuse(name_, "its loops along rows, columns or depth do not step as one loop");
    const ExprNode &a = columns_are_x ? *product_.y : *product_.x,
                   &b = columns_are_x ? *product_.x : *product_.y;
    const auto step = [&](const Merged& m, bool of_a) { return of_a == columns_are_x ? m.y : m.x; };
    return Stmt(std::make_shared<Mma>(instruction_, rows->extent, columns->extent, steps->extent,
                                      View(*product_.acc, rows->acc, columns->acc),
                                      View(a, step(*rows, true), step(*steps, true)),
                                      View(b, step(*steps, false), step(*columns, false)), warps_));
  }

  TileView View(const ExprNode& load, int64_t row_stride, int64_t col_stride) const {
    VarMap first;
    for (const ProductLoop& dim : product_.loops) first[dim.loop->var.get()] = IntConst(0);
    return ViewAt(load, first, row_stride, col_stride);
  }

  std::string name_, instruction_;
  WarpGrid warps_;
  ProductNest product_;
};

}  // namespace

absl::StatusOr<Stmt> TensorizeTiles(const Stmt& body) {
  absl::Status status;
  Stmt result = RewriteEach<For>(body, [&](const For& loop) -> Stmt {
    if (loop.marks.instruction.empty() || !status.ok()) return nullptr;
    absl::StatusOr<Stmt> mma = TileNest::Lower(loop);
    status.Update(mma.status());
    return mma.ok() ? *mma : nullptr;
  });
  if (!status.ok()) return status;
  return result;
}

}  // namespace mycc
