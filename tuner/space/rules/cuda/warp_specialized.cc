// The GPU rule for contractions by wgmma with the copy engine (sm_90a): GEMM, batched GEMM, and convolution
// as implicit GEMM with boxes of pixels as tiles.
//
//   block (tiles of rows, columns and batches, grouped for L2; one each, or as many as the GPU has SMs):
//     copy:    for depth tiles: tiles of a and b into the ring
//     compute: for depth tiles: wgmma on bm x bn x bk
//              epilogue on the accumulators; the tile leaves through shared memory
//
// Persistent blocks may divide the tiles by steps of the depth (stream-K), so that no block waits while
// others compute the last tiles.
//
// Two neighbouring blocks may form a cluster, and each fetch half of the operand that both need.
//
// With few tiles the depth is split (split_depth.h); an operand that the copy engine cannot fetch is repacked
// first (operand.h).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tuner/space/rules/cuda/split_depth.h"
#include "tuner/space/rules/cuda/wgmma_plan.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

using Plan = WgmmaPlan;

// A thread block for each SM, or fewer where that makes the same number of waves.
int64_t PersistentBlocks(int64_t tiles, int64_t sms) { return CeilDiv(tiles, CeilDiv(tiles, sms)); }

// The names of the loops over tiles, outermost first.
struct TileGrid {
  std::vector<std::string> loops;  // they become one loop over blocks
  std::string rank;                // of a block in its cluster; empty without clusters
};

// Batches, then tiles of columns within groups of tiles of rows, so that those that run together share what
// L2 holds.
TileGrid SplitGrid(const Plan& plan, const Values& v, const std::string& name, const TiledLoops& rows,
                   const TiledLoops& cols, TraceBuilder* b) {
  const TensorContraction& t = plan.t(v);
  TileGrid grid;
  std::vector<std::string> row_tiles = rows.outer, col_tiles = cols.outer;
  if (v.at("cluster") > 1) {
    std::string& tiles = DifferInRows(v) ? row_tiles.back() : col_tiles.back();
    b->Split(tiles, {v.at("cluster")});
    grid.rank = SubLoop(tiles, 1);
    tiles = SubLoop(tiles, 0);
  }
  if (v.at("split") > 1) grid.loops.push_back(absl::StrCat(name, ".v"));
  Append(&grid.loops, BatchLoops(plan.anatomy, t, name, v, /*innermost=*/false));
  std::string grouped;
  if (v.at("group") > 1) {
    b->Split(row_tiles.back(), {v.at("group")});
    grouped = SubLoop(row_tiles.back(), 1);
    row_tiles.back() = SubLoop(row_tiles.back(), 0);
  }
  Append(&grid.loops, row_tiles);
  Append(&grid.loops, col_tiles);
  if (!grouped.empty()) grid.loops.push_back(grouped);
  Append(&grid.loops, BatchLoops(plan.anatomy, t, name, v, /*innermost=*/true));
  return grid;
}

// Fuses the loops over tiles and binds them to blocks. Returns the name of the loop over blocks.
std::string BindBlocks(const Plan& plan, const Values& v, const TileGrid& grid, TraceBuilder* b) {
  const std::string blocks = b->Fuse(grid.loops);
  if (!grid.rank.empty()) {
    b->Bind(grid.rank, "block");
    b->MulticastCluster(grid.rank);
  }
  b->Bind(blocks, "block");
  if (v.at("persist") == kStream) {
    const StreamKGroups groups = plan.Groups(v);
    const int64_t sharing = groups.groups * groups.members;
    b->StreamK(blocks, plan.GridTiles(v) < plan.target.sms ? sharing : plan.target.sms, groups);
  } else if (v.at("persist") != 0) {
    b->Persist(blocks, PersistentBlocks(plan.GridTiles(v), plan.target.sms / v.at("cluster")));
    if (v.at("groups") > 1) b->Pingpong(blocks, v.at("groups"));
  }
  return blocks;
}

// The operands' tiles go through a ring in shared memory, the loops from `tile` inwards become the
// instruction, and the result leaves through shared memory where it should.
void EmitRing(const Plan& plan, const Values& v, const std::string& name, const std::string& ring,
              const std::string& tile, const std::string& blocks, TraceBuilder* b) {
  const TensorContraction& t = plan.t(v);
  const bool swap = v.at("swap") != 0;
  const int64_t bm = v.at("bm"), bn = v.at("bn"), element = DTypeBytes(plan.row.operand);
  b->StageShared(name, t.a.buffer, ring, "shared");
  b->StageShared(name, t.b.buffer, ring, "shared");
  b->Layout(t.a.tile, 0, SwizzleOf(plan.InnerTile(v, t.a, plan.Rows(false), swap ? bn : bm) * element));
  b->Layout(t.b.tile, 0, SwizzleOf(plan.InnerTile(v, t.b, plan.Cols(false), swap ? bm : bn) * element));
  b->TensorizeTile(tile, plan.row.name, v.at("warpgroups"), 1);
  b->Pipeline(ring, "bulk", v.at("stages"));
  if (v.at("epilogue") != 0) {
    b->StageWrite(absl::StrCat(name, ".w"), blocks, "shared");
    b->Layout(absl::StrCat(name, ".w.s"), 0,
              SwizzleOf(BestAxisTile(plan.Cols(swap), bn).back() * plan.StoredBytes(v.at("split"))));
  }
}

void Emit(const Plan& plan, const Values& v, TraceBuilder* b) {
  const TensorContraction& t = plan.t(v);
  const bool split = v.at("split") > 1;
  const bool swap = v.at("swap") != 0;
  EmitOperands(t, plan.anatomy.name(t.stage), b);
  const std::string name = split ? EmitParts(plan.anatomy, t.stage, t.depth.back(),
                                             PartDepth(plan.Depth(v), v.at("split"), plan.bk(v)), b)
                                 : plan.anatomy.name(t.stage);
  EmitGroups(plan.anatomy, t.stage, name, b);
  const TiledLoops rows = SplitAxes(plan.stage(), name, swap ? t.cols : t.rows,
                                    BestAxisTile(plan.Rows(swap), v.at("bm")), b),
                   cols = SplitAxes(plan.stage(), name, swap ? t.rows : t.cols,
                                    BestAxisTile(plan.Cols(swap), v.at("bn")), b);
  const std::string depth = LoopOf(name, plan.stage().reduce_axes[t.depth.back()]);
  b->Split(depth, {plan.bk(v)});
  const TileGrid grid = SplitGrid(plan, v, name, rows, cols, b);

  std::vector<std::string> order = grid.loops;
  if (!grid.rank.empty()) order.insert(order.begin(), grid.rank);
  for (size_t r = 0; r + 1 < t.depth.size(); ++r)
    order.push_back(LoopOf(name, plan.stage().reduce_axes[t.depth[r]]));
  order.push_back(SubLoop(depth, 0));
  const std::vector<std::string> tile =
      TileOrder(swap ? t.b : t.a, swap ? t.a : t.b, rows.inner, cols.inner, {SubLoop(depth, 1)});
  Append(&order, tile);
  b->Reorder(order);
  const std::string blocks = BindBlocks(plan, v, grid, b);
  b->CacheWrite(name, blocks);
  if (!split) EmitEpilogue(plan.anatomy, t, b);
  EmitRing(plan, v, name, SubLoop(depth, 0), tile.front(), blocks, b);
  if (split) EmitSumOfParts(plan.anatomy, t, b);
}

// Tiles per SM rounded up, over the exact number: how long the last round makes all wait.
double Waves(const Plan& plan, int64_t bm, int64_t bn, bool swap) {
  const int64_t waves = CeilDiv(plan.Tiles(bm, bn, swap), plan.target.sms);
  return static_cast<double>(waves);
}

struct TileDefault {
  int64_t bm = 64, bn = 64, warpgroups = 1;
  bool swap = false;
};

// The tile that finishes first by its waves: wgmma at its rate, slower where a tile has few columns to feed
// it.
TileDefault DefaultTile(const Plan& plan, int64_t repack, const std::vector<int64_t>& bms,
                        const std::vector<int64_t>& bns) {
  TileDefault best;
  double best_cost = 0;
  for (const bool swap : {false, true}) {
    for (const int64_t bm : bms) {
      for (const int64_t bn : bns) {
        const int64_t warpgroups = bm >= 128 ? 2 : 1;
        if (plan.Sums(bm / warpgroups, bn) > 144) continue;
        // Bytes of operands for each product, against what shared memory and L2 bring.
        const double mma = static_cast<double>(bm * bn) / 8192.0, feed = static_cast<double>(bm + bn) / 128.0;
        const double cost = Waves(plan, bm, bn, swap) * (std::max(mma, feed) + 0.5) * (swap ? 1.02 : 1.0);
        Values v = {{"bm", bm},     {"bn", bn},    {"warpgroups", warpgroups},
                    {"swap", swap}, {"stages", 3}, {"epilogue", 0},
                    {"persist", 0}, {"group", 1},  {"split", 1},
                    {"panels", 1},  {"groups", 1}, {"repack", repack},
                    {"cluster", 1}};
        if (!plan.Legal(v) || (best_cost != 0 && cost >= best_cost)) continue;
        best = {bm, bn, warpgroups, swap};
        best_cost = cost;
      }
    }
  }
  return best;
}

int64_t MostStages(const Plan& plan, Values v) {
  int64_t stages = 2;
  for (int64_t s = 2; s <= 8; ++s) {
    v["stages"] = s;
    if (plan.SharedBytes(v) <= plan.target.smem_bytes) stages = s;
  }
  return stages;
}

std::vector<int64_t> ColumnTiles(const Plan& plan) {
  std::vector<int64_t> tiles;
  int64_t most = 8;
  for (const bool swap : {false, true}) {
    int64_t product = 1;
    for (const int64_t extent : plan.Cols(swap)) product *= extent;
    most = std::max(most, product);
  }
  for (const int64_t bn : {16, 32, 64, 96, 128, 160, 192, 224, 256}) {
    if (bn <= std::max<int64_t>(16, PowerAtLeast(most))) tiles.push_back(bn);
  }
  return tiles;
}

// Forms of the operands that the copy engine can fetch. Copies of what it can fetch anyway pay only where one
// nest of loops cannot order both tiles.
std::vector<int64_t> FormsOf(const TensorForms& forms, int64_t panel, const Anatomy& anatomy) {
  std::vector<int64_t> choices;
  const TensorContraction& direct = forms.direct;
  // wgmma turns over elements of two bytes only.
  const bool is_along = direct.a.depth_contiguous && direct.b.depth_contiguous;
  const bool is_direct = direct.a.bulk && direct.b.bulk && (is_along || DTypeBytes(direct.a.dtype) == 2);
  if (is_direct) choices.push_back(0);
  if (!forms.repacked || !forms.repacked->a.bulk || !forms.repacked->b.bulk) return choices;
  const int64_t depth = anatomy.stage(direct.stage).reduce_axes[forms.repacked->depth.back()]->extent;
  const bool has_order = direct.a.depth_contiguous || !direct.b.depth_contiguous;
  if (2 * depth >= panel && !(is_direct && has_order)) choices.push_back(1);
  return choices;
}

}  // namespace

std::optional<Part> WarpSpecializedPart(const Anatomy& anatomy, const Group& group, const Target& target) {
  const std::optional<TensorForms> forms = FindTensorForms(anatomy, group);
  if (!forms) return std::nullopt;
  const auto row = TensorInstruction(forms->direct, anatomy.stage(group.anchor).output->dtype,
                                     InstructionClass::kWarpgroup, target);
  if (!row) return std::nullopt;
  const Plan plan{{anatomy, *forms, *row, target}};
  const std::vector<int64_t> repacks = FormsOf(*forms, kPanelBytes / DTypeBytes(row->operand), anatomy);
  if (repacks.empty()) return std::nullopt;
  Part part;
  part.prefix = absl::StrCat(anatomy.name(group.anchor), ".");
  part.rule = "warp_specialized";
  const std::vector<int64_t> bms = {64, 128, 192, 256}, bns = ColumnTiles(plan);
  const TileDefault tile = DefaultTile(plan, repacks.front(), bms, bns);
  Values v = {{"bm", tile.bm},     {"bn", tile.bn}, {"warpgroups", tile.warpgroups},
              {"swap", tile.swap}, {"group", 1},    {"stages", 2},
              {"persist", 0},      {"epilogue", 0}, {"split", 1},
              {"panels", 1},       {"groups", 1},   {"repack", repacks.front()},
              {"cluster", 1}};
  if (!plan.Legal(v)) return std::nullopt;
  const bool bulk_store = forms->direct.bulk_store;
  Values with_epilogue = v;
  with_epilogue["epilogue"] = 1;
  const bool epilogue = bulk_store && plan.Legal(with_epilogue);
  v["epilogue"] = epilogue;
  const bool persist = plan.Tiles(tile.bm, tile.bn, tile.swap) > target.sms;
  const std::vector<int64_t> groups = {1, 4, 8, 16};
  int64_t default_group = 1;
  for (const int64_t group : groups) {
    Values grouped = v;
    grouped["group"] = group;
    if (group <= 8 && plan.GroupFits(grouped)) default_group = group;
  }
  const int64_t coarse = std::min(plan.Tiles(128, 128, false), plan.Tiles(128, 128, true));
  part.Decide("bm", bms, tile.bm);
  part.Decide("bn", bns, tile.bn);
  part.Decide("warpgroups", {1, 2, 3}, tile.warpgroups);
  part.Decide("stages", {2, 3, 4, 5, 6, 7, 8}, MostStages(plan, v));
  part.Decide("group", groups, default_group);
  part.Decide("persist", {0, 1, kStream}, persist, false);
  part.Decide("epilogue", bulk_store ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0}, epilogue, false);
  part.Decide("swap", {0, 1}, tile.swap, false);
  part.Decide("split", SplitsOf(plan.Depth(v), plan.panel(v), coarse, target), 1);
  part.Decide("panels",
              plan.Depth(v) >= 8 * plan.panel(v) ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1}, 1);
  part.Decide("groups", persist ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1}, 1);
  part.Decide("repack", repacks, repacks.front(), false);
  part.Decide("cluster", {1, 2}, 1);
  if (HasNearBatches(*forms)) part.Decide("near", {0, 1}, 1, false);
  part.legal = [plan](const Values& values) { return plan.Legal(values); };
  part.emit = [plan](const Values& values, TraceBuilder* b) { Emit(plan, values, b); };
  return part;
}

}  // namespace mycc
