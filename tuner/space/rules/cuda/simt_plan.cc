#include "tuner/space/rules/cuda/simt_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/schedule/tree.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

SharedTile DescribeTile(const Anatomy& anatomy, const Group& group, const Operand& operand, const Var& side,
                        const Var& depth) {
  SharedTile tile{operand.buffer->name};
  tile.computed = std::ranges::count(group.members, operand.producer) > 0;
  tile.rank = operand.buffer->rank();
  if (tile.computed) {
    const Stage& stage = anatomy.stage(operand.producer);
    tile.along_depth = operand.PlainDim(depth) == tile.rank - 1;
    tile.lanes = LanesOf(stage, stage.axes.back());
    return tile;
  }
  tile.has_side = operand.Uses(side);
  tile.has_depth = operand.Uses(depth) && depth->extent > 1;
  const Expr load = Load(operand.buffer, operand.index);
  tile.along_depth = tile.has_depth && (!tile.has_side || StrideOf(*load, depth) == 1);
  tile.lanes = std::min(AlignedLanes(*operand.buffer, operand.index, tile.along_depth ? depth : side),
                        kAccessBytes / std::max(DTypeBytes(operand.buffer->dtype), 1));
  return tile;
}

bool IsStaged(const SharedTile& tile) { return !tile.computed && tile.has_side && tile.has_depth; }

}  // namespace

SimtTiling::SimtTiling(const SimtPlan& plan, const Values& v)
    : vector(std::min(std::max<int64_t>(kAccessBytes / plan.bytes, 1), v.at("thread_n"))),
      halves(v.at("thread_n") / vector),
      warps_m(v.at("tile_m") / (kWarpRows * v.at("thread_m"))),
      warps_n(v.at("tile_n") / (kWarpColumns * v.at("thread_n"))) {}

bool SimtPlan::HasWholeTiles() const { return IsStaged(a) && IsStaged(b); }

// A copy that runs ahead moves at least 4 bytes, and pays where there are several steps.
bool SimtPlan::CanPipeline() const {
  return HasWholeTiles() && bytes >= 4 && outer_reduce.empty() && depth >= 16;
}

bool SimtPlan::TurnsVectors() const {
  const auto turned = [](const SharedTile& tile) { return tile.along_depth && tile.lanes >= kTurnedLanes; };
  return CanPipeline() && (turned(a) || turned(b));
}

int64_t SimtPlan::TileElements(const SharedTile& tile, const Values& v) const {
  return v.at(&tile == &a ? "tile_m" : "tile_n") * v.at("tile_k");
}

int64_t SimtPlan::CopyLanes(const SharedTile& tile, const Values& v) const {
  if (columns_apart && &tile == &b && !tile.along_depth) return 1;
  const int64_t elements = TileElements(tile, v), threads = SimtTiling(*this, v).threads();
  int64_t lanes = tile.along_depth ? std::min(tile.lanes, v.at("lanes_k")) : tile.lanes;
  while (v.at("stages") > 1 && lanes > 1 && elements % (lanes * threads) != 0) lanes /= 2;
  return lanes;
}

// Copies that run ahead are as many accesses of each thread. Vectors of 16 bytes that are transposed are in
// registers through a step, which accumulators leave few of.
bool SimtPlan::CanRunAhead(const SharedTile& tile, const Values& v) const {
  constexpr int64_t kMostBytes = 32;
  const int64_t lanes = CopyLanes(tile, v), threads = SimtTiling(*this, v).threads(),
                elements = TileElements(tile, v);
  if (elements % (lanes * threads) != 0) return false;
  const bool in_registers = tile.along_depth && lanes * bytes == kAccessBytes;
  return !in_registers || elements * bytes <= kMostBytes * threads;
}

int64_t SimtPlan::RunLength(int64_t runs, int64_t tile_k) const {
  return RoundUp(CeilDiv(depth, runs), tile_k);
}

bool SimtPlan::HasRuns(int64_t runs, int64_t tile_k) const {
  const int64_t length = RunLength(runs, tile_k);
  return runs == 1 || (length >= 2 * tile_k && CeilDiv(depth, length) == runs);
}

bool SimtPlan::Legal(const Values& v) const {
  const SimtTiling tiling(*this, v);
  const int64_t tile_m = v.at("tile_m"), tile_n = v.at("tile_n"), threads = tiling.threads();
  if (tile_m != tiling.warps_m * SimtTiling::kWarpRows * v.at("thread_m") ||
      tile_n != tiling.warps_n * SimtTiling::kWarpColumns * v.at("thread_n"))
    return false;
  if (threads > 512 || threads < kWarp) return false;
  if (v.at("stages") > 1 && !(CanRunAhead(a, v) && CanRunAhead(b, v))) return false;
  if (v.at("resident") > 0 && v.at("stages") == 1) return false;
  const int64_t accumulators = v.at("thread_m") * v.at("thread_n") * bytes / 4;
  if (accumulators > 128 || accumulators * threads > 32768) return false;
  // Steps are unrolled: with more multiplications in one, the assembler works for seconds and spills.
  constexpr int64_t kMostOfStep = 2048;
  if (v.at("thread_m") * v.at("thread_n") * v.at("tile_k") > kMostOfStep) return false;
  return HasRuns(v.at("runs"), v.at("tile_k"));
}

SimtPlan MakeSimtPlan(const Anatomy& anatomy, const Group& group) {
  const Stage& stage = anatomy.product(group.anchor);
  const Contraction& c = *anatomy.info(group.anchor).contraction;
  SimtPlan plan;
  plan.t = anatomy.name(group.anchor);
  plan.bytes = DTypeBytes(stage.value->dtype);
  int m = c.rows.front(), k = 0;
  const int n = c.cols.back();
  for (int a : c.rows) m = stage.axes[a]->extent >= stage.axes[m]->extent ? a : m;
  for (int r = 0; r < static_cast<int>(stage.reduce_axes.size()); ++r)
    k = stage.reduce_axes[r]->extent >= stage.reduce_axes[k]->extent ? r : k;
  for (int a = 0; a < static_cast<int>(stage.axes.size()); ++a) {
    if (a == m || a == n) continue;
    plan.others.push_back(stage.axes[a]->name);
    plan.count *= stage.axes[a]->extent;
  }
  for (const Var& axis : anatomy.stage(group.anchor).axes) plan.axes.push_back(axis->name);
  if (c.groups) {
    plan.grouped = plan.axes[c.groups->axis];
    plan.group = c.groups->extent;
  }
  for (int r = 0; r < static_cast<int>(stage.reduce_axes.size()); ++r) {
    if (r != k) plan.outer_reduce.push_back(stage.reduce_axes[r]->name);
  }
  plan.m = stage.axes[m]->name;
  plan.n = stage.axes[n]->name;
  plan.k = stage.reduce_axes[k]->name;
  plan.rows = stage.axes[m]->extent;
  plan.columns = stage.axes[n]->extent;
  plan.depth = stage.reduce_axes[k]->extent;
  plan.a = DescribeTile(anatomy, group, c.scalar, stage.axes[m], stage.reduce_axes[k]);
  plan.b = DescribeTile(anatomy, group, c.vector, stage.axes[n], stage.reduce_axes[k]);
  // The second tile of one tensor has a number (see stage).
  if (c.OfOneTensor()) (c.scalar.is_first ? plan.b : plan.a).second = true;
  plan.columns_apart = plan.HasWholeTiles() && plan.bytes == 4 && plan.columns % 4 != 0;
  for (int s : group.members) {
    if (s > group.anchor) plan.epilogue.push_back(anatomy.name(s));
  }
  return plan;
}

}  // namespace mycc
