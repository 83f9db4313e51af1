#include "codegen/passes/tile_copies.h"

#include <vector>

#include "codegen/expr/affine.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

struct PerfectNest {
  std::vector<const For*> loops;
  const Store* store = nullptr;
  int64_t iterations = 1;
};

std::optional<PerfectNest> PerfectNestOf(const Stmt& stmt) {
  PerfectNest nest;
  Stmt inner = stmt;
  while (const For* loop = DynAs<For>(inner)) {
    const auto extent = ConstExtent(*loop);
    if (!extent) return std::nullopt;
    nest.loops.push_back(loop);
    nest.iterations *= *extent;
    inner = loop->body;
  }
  nest.store = DynAs<Store>(inner);
  return nest.store ? std::optional<PerfectNest>(nest) : std::nullopt;
}

// The view of the nest's element (0, 0).
std::vector<Expr> First(const PerfectNest& nest, const std::vector<Expr>& indices) {
  VarMap zero;
  for (const For* loop : nest.loops) zero[loop->var.get()] = IntConst(0);
  std::vector<Expr> first;
  first.reserve(indices.size());
  for (const Expr& index : indices) first.push_back(Simplify(Substitute(index, zero)));
  return first;
}

bool BeginsAtSums(const PerfectNest& nest, const Mma& mma, const std::vector<Expr>& indices) {
  const BufferNode& sums = *mma.acc.buffer;
  return nest.iterations == mma.m * mma.n &&
         StructurallyEqual(Simplify(FlatIndex(sums, First(nest, indices))),
                           Simplify(FlatIndex(sums, mma.acc.indices)));
}

// Whether every loop runs along the columns of both views, or along the rows of both.
std::optional<TileView> MatchedTile(const PerfectNest& nest, const Mma& mma, const std::vector<Expr>& sums,
                                    const Buffer& tensor, const std::vector<Expr>& indices) {
  if (tensor == mma.acc.buffer || tensor->dtype != mma.acc.buffer->dtype || !BeginsAtSums(nest, mma, sums))
    return std::nullopt;
  const Expr sum_flat = FlatIndex(*mma.acc.buffer, sums), tensor_flat = FlatIndex(*tensor, indices);
  const int64_t row = mma.acc.row_stride;
  int64_t row_stride = 0;
  for (const For* loop : nest.loops) {
    const auto in_sums = SplitLinear(sum_flat, loop->var.get());
    const auto in_tensor = SplitLinear(tensor_flat, loop->var.get());
    if (!in_sums || !in_tensor) return std::nullopt;
    const int64_t step = in_sums->coefficient, other = in_tensor->coefficient;
    if (mma.m == 1 || step < row) {
      if (other != step) return std::nullopt;
      continue;
    }
    const int64_t rows = step / row;
    if (step % row != 0 || other % rows != 0 || (row_stride != 0 && other / rows != row_stride))
      return std::nullopt;
    row_stride = other / rows;
  }
  return TileView{tensor, First(nest, indices), row_stride, 1};
}

}  // namespace

bool SetsSumsToZero(const Stmt& stmt, const Mma& mma) {
  const auto nest = PerfectNestOf(stmt);
  if (!nest || nest->store->buffer != mma.acc.buffer || nest->store->value->op != Op::kConst) return false;
  const Scalar value = nest->store->value->value;
  return (IsFloat(mma.acc.buffer->dtype) ? value.f == 0 : value.i == 0) &&
         BeginsAtSums(*nest, mma, nest->store->indices);
}

std::optional<TileView> LoadsSums(const Stmt& stmt, const Mma& mma) {
  const auto nest = PerfectNestOf(stmt);
  if (!nest || nest->store->buffer != mma.acc.buffer || nest->store->value->op != Op::kLoad)
    return std::nullopt;
  const Expr& load = nest->store->value;
  return MatchedTile(*nest, mma, nest->store->indices, load->buffer, load->args);
}

std::optional<TileView> StoresSums(const Stmt& stmt, const Mma& mma) {
  const auto nest = PerfectNestOf(stmt);
  if (!nest || nest->store->value->op != Op::kLoad || nest->store->value->buffer != mma.acc.buffer)
    return std::nullopt;
  return MatchedTile(*nest, mma, nest->store->value->args, nest->store->buffer, nest->store->indices);
}

}  // namespace mycc
