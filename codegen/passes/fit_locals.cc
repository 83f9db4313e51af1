// Shrinks local buffers to the part that is used, and pads accumulator rows to whole vectors.
//
//   alloc acc[6, 16]                         alloc acc[4, 16]
//   for i in 4: for j in 13: acc[i, j]  ->   for i in 4: for j in 13: acc[i, j]
//
// A tail of 13 columns with 8 lanes keeps 16: rows then start at a vector's boundary, and stay in registers.
// Loops stop before elements that are never read: for instance, if products are added to 56 of 64 rows of
// sums, only 56 are set to zero.
#include <algorithm>
#include <bit>
#include <unordered_map>
#include <vector>

#include "codegen/expr/affine.h"
#include "codegen/expr/integers.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

using Shapes = std::unordered_map<const BufferNode*, std::vector<int64_t>>;

int64_t PaddedToLanes(int64_t extent, int64_t lanes) {
  if (extent >= lanes) return RoundUp(extent, lanes);
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(extent)));
}

// The part of each local buffer that is read or, with `or_written`, stored to.
Shapes UsedShapes(const Stmt& body, bool or_written) {
  Shapes used;
  const auto touch = [&](const BufferNode& buffer, const std::vector<Expr>& indices) {
    const auto it = used.find(&buffer);
    if (it == used.end()) return;
    for (size_t d = 0; d < indices.size(); ++d) {
      const auto range = RangeOf(indices[d]);
      const int64_t end = range ? std::min(range->max + 1, buffer.shape[d]) : buffer.shape[d];
      it->second[d] = std::max(it->second[d], end);
    }
  };
  ForEachStmt(body, [&](const Stmt& stmt) {
    if (const Alloc* alloc = DynAs<Alloc>(stmt)) used.try_emplace(alloc->buffer.get(), alloc->buffer->rank());
    ForEachLoad(stmt, [&](const ExprNode& load) { touch(*load.buffer, load.args); });
    if (const Store* store = DynAs<Store>(stmt); store && or_written) touch(*store->buffer, store->indices);
    if (const Combine* combine = DynAs<Combine>(stmt))
      combine->ForEachBuffer([&](const Buffer& buffer) { touch(*buffer, combine->indices); });
    if (const Mma* mma = DynAs<Mma>(stmt)) {
      for (const TileView* view : {&mma->acc, &mma->a, &mma->b}) {
        if (used.contains(view->buffer.get())) used[view->buffer.get()] = view->buffer->shape;
      }
    }
  });
  return used;
}

std::vector<int64_t> Fitted(const BufferNode& buffer, std::vector<int64_t> used, const Target& target) {
  for (int64_t& extent : used) extent = std::max<int64_t>(extent, 1);
  if (buffer.scope == Scope::kAccumulator && target.kind == TargetKind::kCpu && !used.empty())
    used.back() = PaddedToLanes(used.back(), VectorBytes(target) / DTypeBytes(buffer.dtype));
  return used;
}

// The largest buffer whose rows are padded. Larger ones are shared by several statements, and laid out by the
// schedule.
constexpr int64_t kMaxTileBytes = int64_t{16} * 1024;

// The number of iterations before those that write only rows that are never read. The end of a row is written
// with its vector. The loop contains only the store.
int64_t NeededIterations(const For& loop, const Store& store, const std::vector<int64_t>& read) {
  int64_t needed = *ConstExtent(loop);
  for (size_t d = 0; d + 1 < read.size(); ++d) {
    const auto linear = SplitLinear(store.indices[d], loop.var.get());
    const auto rest = linear && linear->rest ? RangeOf(linear->rest) : std::nullopt;
    if (!rest || linear->coefficient <= 0) continue;
    needed = std::min(needed, CeilDiv(read[d] - rest->min, linear->coefficient));
  }
  return std::max<int64_t>(needed, 0);
}

Stmt WithoutUnreadWrites(const Stmt& body) {
  const Shapes reads = UsedShapes(body, /*or_written=*/false);
  return RewriteEach<For>(body, [&](const For& loop) -> Stmt {
    Stmt inner;
    LoopsOfNest(loop.body, &inner);
    const Store* store = ConstExtent(loop) ? DynAs<Store>(inner) : nullptr;
    const auto read = store ? reads.find(store->buffer.get()) : reads.end();
    if (read == reads.end()) return nullptr;
    const int64_t needed = NeededIterations(loop, *store, read->second);
    if (needed == *ConstExtent(loop)) return nullptr;
    const Var var = MakeVar(loop.var->name, needed);
    Stmt fewer = SubstituteVars(loop.body, {{loop.var.get(), VarRef(var)}});
    return loop.With({.var = var, .extent = IntConst(needed), .body = std::move(fewer)});
  });
}

}  // namespace

Stmt FitLocals(const Stmt& all, const Target& target) {
  const Stmt body = WithoutUnreadWrites(all);
  const Shapes used = UsedShapes(body, /*or_written=*/true);
  const auto keep = [](const std::vector<Expr>& indices) { return indices; };
  return RewriteEach<Alloc>(body, [&](const Alloc& alloc) -> Stmt {
    const Buffer& old = alloc.buffer;
    if (old->bytes() > kMaxTileBytes || old->scope == Scope::kShared) return nullptr;
    const std::vector<int64_t> shape = Fitted(*old, used.at(old.get()), target);
    if (shape == old->shape) return nullptr;
    const Buffer fitted = MakeBuffer(old->name, old->dtype, shape, old->scope);
    return std::make_shared<Alloc>(fitted, ReplaceBuffer(alloc.body, old, fitted, keep));
  });
}

}  // namespace mycc
