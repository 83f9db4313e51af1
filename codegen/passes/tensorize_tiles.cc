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
#include "codegen/expr/affine.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/product_nest.h"

namespace mycc {
namespace {

// Several loops that step like one loop of `extent` steps.
struct Merged {
  int64_t extent = 1, acc = 0, x = 0, y = 0;
};

// Combines the loops of one kind into one, the innermost (smallest step of the accumulator, or of x) first;
// nullopt when they do not step like one loop.
std::optional<Merged> Merge(std::vector<const ProductLoop*> dims) {
  std::ranges::reverse(dims);
  std::ranges::stable_sort(dims, {}, [](const ProductLoop* dim) { return std::max(dim->acc, *dim->x); });
  Merged merged;
  for (const ProductLoop* dim : dims) {
    if (merged.extent == 1) {
      merged = Merged{dim->extent, dim->acc, *dim->x, *dim->y};
      continue;
    }
    if (dim->acc != merged.acc * merged.extent || dim->x != merged.x * merged.extent ||
        dim->y != merged.y * merged.extent)
      return std::nullopt;
    merged.extent *= dim->extent;
  }
  return merged;
}

absl::StatusOr<Stmt> TileProduct(const For& marked) {
  const auto refuse = [&](const auto&... why) {
    return Refusal("loop ", marked.var->name, " cannot be tensorized: ", why...);
  };
  const absl::StatusOr<ProductNest> nest = ProductNestOf(marked, /*guarded=*/true);
  if (!nest.ok()) return refuse(nest.status().message());
  VarMap first;
  for (const ProductLoop& dim : nest->loops) {
    if (!dim.x || !dim.y) return refuse("loop ", dim.loop->var->name, " does not step evenly");
    first[dim.loop->var.get()] = IntConst(0);
  }
  std::vector<const ProductLoop*> along_x, along_y, depth;
  for (const ProductLoop& dim : nest->loops) {
    if (dim.extent == 1) continue;
    if (dim.is_reduction()) {
      depth.push_back(&dim);
    } else if (dim.x != 0 && dim.y != 0) {
      return refuse("loop ", dim.loop->var->name, " steps through both operands");
    } else {
      (dim.x != 0 ? along_x : along_y).push_back(&dim);
    }
  }
  // The loops that are contiguous in the accumulator are the columns.
  const bool columns_are_x = std::ranges::count(along_x, 1, &ProductLoop::acc) > 0;
  const auto rows = Merge(columns_are_x ? along_y : along_x),
             columns = Merge(columns_are_x ? along_x : along_y), steps = Merge(depth);
  if (!rows || !columns || !steps)
    return refuse("its loops along rows, columns or depth do not step as one loop");
  const ExprNode &a = columns_are_x ? *nest->y : *nest->x, &b = columns_are_x ? *nest->x : *nest->y;
  const auto step = [&](const Merged& m, bool of_a) { return of_a == columns_are_x ? m.y : m.x; };
  return Stmt(std::make_shared<Mma>(marked.marks.instruction, rows->extent, columns->extent, steps->extent,
                                    ViewAt(*nest->acc, first, rows->acc, columns->acc),
                                    ViewAt(a, first, step(*rows, true), step(*steps, true)),
                                    ViewAt(b, first, step(*steps, false), step(*columns, false)),
                                    marked.marks.warps));
}

}  // namespace

absl::StatusOr<Stmt> TensorizeTiles(const Stmt& body) {
  return TryRewriteEach<For>(body, [](const For& loop) -> absl::StatusOr<Stmt> {
    if (loop.marks.instruction.empty()) return nullptr;
    return TileProduct(loop);
  });
}

}  // namespace mycc
