// Keeps sums of AMX products in tile registers over the loops of a reduction, and finds the statements before
// and after these loops that only move the sums. Tile registers execute those too.
//
//   for i in 32: for j in 32: acc[i, j] = 0          sums in tiles
//   for k in 8:                                        zero tiles of acc
//     mma amx.bf16 32x32x32: acc += a * b      ->      for k in 8:
//   for i in 32: for j in 32: y[..] = acc[i, j]          mma amx.bf16 32x32x32: acc += a * b
//                                                      store tiles to y
//
// A function, the kernel or the body of its parallel loops, loads one configuration of the registers at its
// entry, the most used one of its regions. Only regions with another one load theirs.
#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "codegen/expr/affine.h"
#include "codegen/expr/integers.h"
#include "codegen/ir/cpu_stmts.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"
#include "codegen/passes/tile_grid.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

using Products = std::vector<const Mma*>;

// The products in a statement that contains only products into one fixed accumulator; empty for other
// statements.
Products ProductsOfOneAccumulator(const Stmt& stmt) {
  Products products;
  bool alone = true;
  VisitStmts(stmt, [&](const Stmt& s) {
    if (const Mma* mma = DynAs<Mma>(s)) {
      products.push_back(mma);
    } else if (const For* loop = DynAs<For>(s)) {
      alone &= loop->loop_kind == LoopKind::kSerial || loop->loop_kind == LoopKind::kUnroll;
    } else {
      alone &= s->kind == StmtKind::kSeq;
    }
    return alone;
  });
  if (!alone || products.empty()) return {};
  const Mma& first = *products.front();
  const auto inner = LoopVarsUnder(stmt);
  for (const Mma* mma : products) {
    if (mma->acc.buffer != first.acc.buffer || mma->m != first.m || mma->n != first.n ||
        mma->instruction != first.instruction || UsesAnyOf(mma->acc.indices, inner) ||
        !StructurallyEqual(mma->acc.indices, first.acc.indices))
      return {};
  }
  return products;
}

// Whether the products fit the registers, and read a along its memory.
bool IsForTileRegisters(const Products& products) {
  if (products.empty()) return false;
  const int rows = GridOf(*products.front()).rows();
  return std::ranges::all_of(products, [&](const Mma* mma) {
    const bool one_group = mma->k <= mma->group;
    // In what a group lacks, a has zeros. They make no NaN of what b has there if they are integers.
    const bool whole_groups = mma->k % mma->group == 0 || !IsFloat(mma->a.buffer->dtype);
    return mma->row()->in_tiles() && GridOf(*mma).fits() && GridOf(*mma).rows() == rows &&
           mma->k <= mma->row()->k && whole_groups && (mma->a.col_stride == mma->group || one_group) &&
           mma->b.col_stride == mma->group;
  });
}

// A nest of loops around one store.
struct PerfectNest {
  std::vector<const For*> loops;
  const Store* store = nullptr;
  int64_t iterations = 1;
};

// Nullopt for other statements, and where the extent of a loop is not constant.
std::optional<PerfectNest> PerfectNestOf(const Stmt& stmt) {
  Stmt inner;
  PerfectNest nest{LoopsOfNest(stmt, &inner)};
  nest.store = DynAs<Store>(inner);
  for (const For* loop : nest.loops) nest.iterations *= ConstExtent(*loop).value_or(0);
  return nest.store != nullptr && nest.iterations > 0 ? std::optional(nest) : std::nullopt;
}

// The view of the nest's element (0, 0).
std::vector<Expr> First(const PerfectNest& nest, const std::vector<Expr>& indices) {
  return SimplifiedAt(indices, DigitsOf(nest.loops, IntConst(0)));
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
    const auto in_sums = StrideOf(sum_flat, loop->var.get()),
               in_tensor = StrideOf(tensor_flat, loop->var.get());
    if (!in_sums || !in_tensor) return std::nullopt;
    const int64_t step = *in_sums, other = *in_tensor;
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

// The move of a statement that only copies all sums from a tensor (kLoad) or to it (kStore), in rows of equal
// distance; null for other statements.
Stmt MoveOfSums(TileMove::Kind move, const Stmt& stmt, const Mma& mma) {
  const auto nest = PerfectNestOf(stmt);
  if (!nest || nest->store->value->op != Op::kLoad) return nullptr;
  const Store& store = *nest->store;
  const ExprNode& load = *store.value;
  const bool loads = move == TileMove::kLoad;
  if ((loads ? store.buffer : load.buffer) != mma.acc.buffer) return nullptr;
  const auto view = loads ? MatchedTile(*nest, mma, store.indices, load.buffer, load.args)
                          : MatchedTile(*nest, mma, load.args, store.buffer, store.indices);
  return view ? std::make_shared<TileMove>(move, *view, stmt) : nullptr;
}

// The moves that begin a region; null when the statement does something else.
Stmt BeginOf(const Stmt& stmt, const Mma& mma) {
  if (const If* choice = DynAs<If>(stmt)) {
    const Stmt then = BeginOf(choice->then, mma);
    const Stmt otherwise = choice->otherwise ? BeginOf(choice->otherwise, mma) : nullptr;
    return then && otherwise ? std::make_shared<If>(choice->condition, then, otherwise) : nullptr;
  }
  const auto nest = PerfectNestOf(stmt);
  const bool sets_to_zero = nest && nest->store->buffer == mma.acc.buffer && IsZero(nest->store->value) &&
                            BeginsAtSums(*nest, mma, nest->store->indices);
  if (sets_to_zero) return std::make_shared<TileMove>(TileMove::kZero, mma.acc, stmt);
  return MoveOfSums(TileMove::kLoad, stmt, mma);
}

// A move between the registers and the accumulator.
Stmt MoveOfAccumulator(TileMove::Kind move, const Mma& mma) {
  return std::make_shared<TileMove>(move, mma.acc, MakeSeq({}));
}

Stmt RegionOf(const Stmt& begin, const Stmt& stmt, const Products& products, const Stmt& end) {
  // All steps of a region are as deep as its deepest.
  const Mma& deepest = *std::ranges::max(products, {}, [](const Mma* mma) { return DepthBytes(*mma); });
  const int64_t depth_bytes = RoundUp(DepthBytes(deepest), DTypeBytes(deepest.row()->accumulator));
  const VarSet inner = LoopVarsUnder(stmt);
  // Products that read the same elements in all iterations say so.
  const Stmt fixed = RewriteEach<Mma>(stmt, [&](const Mma& mma) -> Stmt {
    if (DepthBytes(mma) == depth_bytes || UsesAnyOf(mma.a.indices, inner) || UsesAnyOf(mma.b.indices, inner))
      return nullptr;
    return Changed(mma, [](Mma* changed) { changed->is_fixed = true; });
  });
  return std::make_shared<TileRegion>(begin, fixed, end, depth_bytes);
}

// Replaces the statements from s on by a region with the statements that begin and end it. Returns their
// number; 0 when there is no such region.
size_t PlaceSequence(const Seq& seq, size_t s, std::vector<Stmt>* placed) {
  const auto& stmts = seq.stmts;
  if (s + 1 >= stmts.size() || stmts[s + 1]->kind == StmtKind::kSeq) return 0;
  const Products products = ProductsOfOneAccumulator(stmts[s + 1]);
  if (!IsForTileRegisters(products)) return 0;
  const Mma& mma = *products[0];
  const Stmt begin = BeginOf(stmts[s], mma);
  if (begin == nullptr) return 0;
  // The sums stay in registers to the end if no other statement reads them.
  const Stmt stored = s + 2 < stmts.size() ? MoveOfSums(TileMove::kStore, stmts[s + 2], mma) : nullptr;
  const auto reads = [&](const Stmt& stmt) { return BuffersUnder(stmt).contains(mma.acc.buffer.get()); };
  const bool ends = stored && std::none_of(stmts.begin() + static_cast<ptrdiff_t>(s) + 3, stmts.end(), reads);
  const Stmt end = ends ? stored : MoveOfAccumulator(TileMove::kStore, mma);
  placed->push_back(RegionOf(begin, stmts[s + 1], products, end));
  return ends ? 3 : 2;
}

Stmt WithTiles(const Stmt& stmt) {
  if (const Seq* seq = DynAs<Seq>(stmt)) {
    std::vector<Stmt> placed;
    for (size_t s = 0; s < seq->stmts.size();) {
      const size_t done = PlaceSequence(*seq, s, &placed);
      if (done == 0) placed.push_back(WithTiles(seq->stmts[s]));
      s += std::max<size_t>(done, 1);
    }
    return placed == seq->stmts ? stmt : MakeSeq(std::move(placed));
  }
  const Products products = ProductsOfOneAccumulator(stmt);
  if (!IsForTileRegisters(products)) return MapChildren(stmt, WithTiles);
  return RegionOf(MoveOfAccumulator(TileMove::kLoad, *products[0]), stmt, products,
                  MoveOfAccumulator(TileMove::kStore, *products[0]));
}

TileGrid::Bytes ConfigurationOf(const TileRegion& region) {
  const Mma* mma = ProductsOfOneAccumulator(region.products).front();
  return GridOf(*mma, region.depth_bytes).Configuration();
}

// Adds up how often the regions of a function with each configuration run.
using Runs = std::map<TileGrid::Bytes, double>;
void CountRuns(const Stmt& stmt, double times, bool in_team, Runs* runs) {
  if (const TileRegion* region = DynAs<TileRegion>(stmt)) {
    (*runs)[ConfigurationOf(*region)] += times;
    return;
  }
  if (const For* loop = DynAs<For>(stmt)) {
    if (IsForTeam(*loop, in_team)) return;
    times *= static_cast<double>(ConstExtent(*loop).value_or(1));
  }
  for (const Stmt& child : Children(stmt)) CountRuns(child, times, in_team, runs);
}

// The configuration that a function loads at its entry.
TileGrid::Bytes MostUsed(const Stmt& function, bool in_team) {
  Runs runs;
  CountRuns(function, 1, in_team, &runs);
  const auto most = std::ranges::max_element(runs, {}, &Runs::value_type::second);
  return most == runs.end() ? TileGrid::Bytes{} : most->first;
}

Stmt WithConfigurations(const Stmt& stmt, TileGrid::Bytes of_function, bool in_team) {
  if (const TileRegion* region = DynAs<TileRegion>(stmt)) {
    const bool configures = ConfigurationOf(*region) != of_function;
    if (configures == region->configures) return stmt;
    return Changed(*region, [&](TileRegion* changed) { changed->configures = configures; });
  }
  const For* loop = DynAs<For>(stmt);
  if (loop != nullptr && IsForTeam(*loop, in_team)) {
    Stmt body;
    LoopsOfNest(stmt, &body, LoopKind::kParallel);
    in_team = true;
    of_function = MostUsed(body, in_team);
  }
  return MapChildren(stmt,
                     [&](const Stmt& child) { return WithConfigurations(child, of_function, in_team); });
}

}  // namespace

Stmt PlaceTiles(const Stmt& body) {
  const Stmt placed = WithTiles(body);
  return WithConfigurations(placed, MostUsed(placed, /*in_team=*/false), /*in_team=*/false);
}

}  // namespace mycc
