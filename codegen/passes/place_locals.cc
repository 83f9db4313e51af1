// Tells the code of a CPU what follows from all readers of a buffer in the function:
//   - elements of a tile's rows that nothing reads: stores of whole vectors may change them;
//   - values that only products of bf16 read: their instructions treat subnormal numbers as zero, so that
//     the one which rounds may do so, too.
#include <algorithm>

#include "codegen/expr/affine.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

// The number of leading elements of the buffer's last dimension that are read.
int64_t ColumnsRead(const Alloc& alloc) {
  if (alloc.buffer->rank() == 0) return Alloc::kAllColumns;
  const int64_t all = alloc.buffer->shape.back();
  int64_t columns = 0;
  const auto read_to = [&](const Expr& index, int64_t width) {
    const auto range = RangeOf(index);
    columns = std::max(columns, range ? std::min(range->max + width, all) : all);
  };
  ForEachStmt(alloc.body, [&](const Stmt& stmt) {
    ForEachLoad(stmt, [&](const ExprNode& load) {
      if (load.buffer == alloc.buffer) read_to(load.args.back(), 1);
    });
    if (const Mma* mma = DynAs<Mma>(stmt)) {
      if (mma->a.buffer == alloc.buffer || mma->b.buffer == alloc.buffer) columns = all;
      if (mma->acc.buffer == alloc.buffer) read_to(mma->acc.indices.back(), mma->n);
    }
  });
  return columns == all ? Alloc::kAllColumns : columns;
}

// Whether nothing but the bf16 operands of dot-product and tile instructions is read from the buffer.
bool IsReadByBf16Products(const Alloc& alloc) {
  if (alloc.buffer->dtype != DType::kBF16 || LoadedUnder(alloc.body).contains(alloc.buffer.get()))
    return false;
  bool is_read = false, others_read = false;
  VisitEach<Mma>(alloc.body, [&](const Mma& mma) {
    const bool reads = mma.a.buffer == alloc.buffer || mma.b.buffer == alloc.buffer;
    const bool flushes = mma.row()->lanes == LaneProduct::kDotBf16;
    is_read |= reads;
    others_read |= (reads && !flushes) || mma.acc.buffer == alloc.buffer;
  });
  return is_read && !others_read;
}

// The stores of rounded f32 into the buffer say so.
Stmt WithFlushes(const Stmt& body, const Buffer& buffer) {
  return RewriteEach<Store>(body, [&](const Store& store) -> Stmt {
    const bool rounds = store.value->op == Op::kCast && store.value->args[0]->dtype == DType::kF32;
    if (store.buffer != buffer || !rounds || store.flushes) return nullptr;
    return Changed(store, [](Store* changed) { changed->flushes = true; });
  });
}

}  // namespace

Stmt PlaceLocals(const Stmt& body) {
  return RewriteEach<Alloc>(body, [](const Alloc& alloc) -> Stmt {
    const Stmt inside = IsReadByBf16Products(alloc) ? WithFlushes(alloc.body, alloc.buffer) : alloc.body;
    const int64_t columns = ColumnsRead(alloc);
    if (inside == alloc.body && columns == alloc.read_columns) return nullptr;
    return Changed(alloc, [&](Alloc* changed) {
      changed->body = inside;
      changed->read_columns = columns;
    });
  });
}

}  // namespace mycc
