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
// The taps of a convolution's window may share one tile of pixels (tap_window.h): a step then multiplies by
// all of them.
//
// Persistent blocks whose tiles all multiply by the same b, whole, fetch it once (stationary weights).
//
// With few tiles the depth is split (split_depth.h); an operand that the copy engine cannot fetch is repacked
// first (operand.h).
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "codegen/workload/folded_stride.h"
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
void EmitRing(const Plan& plan, const Values& v, const StagedBuffers& buffers, const std::string& name,
              const std::string& ring, const std::string& tile, const std::string& blocks, TraceBuilder* b) {
  const TensorContraction& t = plan.t(v);
  const bool swap = v.at("swap") != 0;
  const int64_t element = DTypeBytes(plan.row.operand);
  const AxisTile row_tile = plan.RowTile(v), col_tile = plan.ColTile(v);
  const TapWindow* window = plan.window(v);
  const std::string taps =
      window != nullptr ? LoopOf(name, plan.stage().reduce_axes[window->taps]) : std::string();
  const std::string& ring_of_b = plan.IsStationary(v) ? blocks : ring;
  const StagedBuffers tiles = StageOperands(t, buffers, name, {ring, ring_of_b, taps}, b);
  b->Layout(tiles.a, 0, SwizzleOf(plan.InnerTile(v, t.a, swap ? col_tile : row_tile) * element));
  b->Layout(tiles.b, 0, SwizzleOf(plan.InnerTile(v, t.b, swap ? row_tile : col_tile) * element));
  if (window != nullptr) b->Bind(taps, "unroll");
  b->TensorizeTile(tile, plan.row.name, v.at("warpgroups"), 1);
  b->Pipeline(ring, "bulk", v.at("stages"));
  if (v.at("epilogue") != 0) {
    b->StageWrite(absl::StrCat(name, ".w"), blocks, "shared");
    b->Layout(absl::StrCat(name, ".w.s"), 0, SwizzleOf(col_tile.back() * plan.StoredBytes(v.at("split"))));
  }
}

void Emit(const Plan& plan, const Values& v, TraceBuilder* b) {
  const TensorContraction& t = plan.t(v);
  const bool split = v.at("split") > 1;
  const bool swap = v.at("swap") != 0;
  const StagedBuffers buffers = EmitOperands(t, plan.anatomy.name(t.stage), b);
  const std::string name = split ? EmitParts(plan.anatomy, t.stage, t.depth.back(),
                                             PartDepth(plan.Depth(v), v.at("split"), plan.bk(v)), b)
                                 : plan.anatomy.name(t.stage);
  EmitGroups(plan.anatomy, t.stage, name, b);
  TiledLoops rows = SplitAxes(plan.stage(), name, swap ? t.cols : t.rows, plan.RowTile(v), b);
  const TiledLoops cols = SplitAxes(plan.stage(), name, swap ? t.rows : t.cols, plan.ColTile(v), b);
  const std::string depth = LoopOf(name, plan.stage().reduce_axes[t.depth.back()]);
  b->Split(depth, {plan.bk(v)});
  const TileGrid grid = SplitGrid(plan, v, name, rows, cols, b);

  std::vector<std::string> order = grid.loops;
  if (!grid.rank.empty()) order.insert(order.begin(), grid.rank);
  const TapWindow* window = plan.window(v);
  std::vector<std::string> taps, of_product;
  for (size_t r = 0; r + 1 < t.depth.size(); ++r) {
    const bool is_tap = window != nullptr && t.depth[r] == window->taps,
               is_joined = window != nullptr && t.depth[r] == window->joined;
    (is_tap      ? taps
     : is_joined ? of_product
                 : order)
        .push_back(LoopOf(name, plan.stage().reduce_axes[t.depth[r]]));
  }
  order.push_back(SubLoop(depth, 0));
  Append(&order, taps);
  of_product.push_back(SubLoop(depth, 1));
  // Taps shift the tile's outermost axis, so that they shift by whole rows of its other axes.
  if (window != nullptr)
    std::rotate(rows.inner.begin(), rows.inner.begin() + static_cast<ptrdiff_t>(window->axis),
                rows.inner.begin() + static_cast<ptrdiff_t>(window->axis) + 1);
  const std::vector<std::string> tile =
      TileOrder(swap ? t.b : t.a, swap ? t.a : t.b, rows.inner, cols.inner, of_product);
  Append(&order, tile);
  b->Reorder(order);
  b->Fuse(of_product);
  const std::string blocks = BindBlocks(plan, v, grid, b);
  b->CacheWrite(name, blocks);
  if (!split) EmitEpilogue(plan.anatomy, t, b);
  EmitRing(plan, v, buffers, name, SubLoop(depth, 0), tile.front(), blocks, b);
  if (split) EmitSumOfParts(plan.anatomy, t, b);
}

struct TileDefault {
  int64_t bm = 64, bn = 64, warpgroups = 1;
  bool swap = false;
  int64_t split = 1;
};

Values ValuesOf(const TileDefault& tile, int64_t repack) {
  return {{"bm", tile.bm},     {"bn", tile.bn}, {"warpgroups", tile.warpgroups},
          {"swap", tile.swap}, {"stages", 3},   {"epilogue", 0},
          {"persist", 0},      {"group", 1},    {"split", tile.split},
          {"panels", 1},       {"groups", 1},   {"repack", repack},
          {"cluster", 1}};
}

// When the launch ends, in steps of 8192 sums: wgmma at its rate, slower where a tile has few columns to feed
// it, by the waves of thread blocks. Parts of the depth are stored, and a launch adds them up.
double CostOf(const Plan& plan, const TileDefault& tile, int64_t steps) {
  constexpr double kStepCycles = 256, kLaunchCycles = 3500, kSumBytes = 4, kBytesOfCycle = 40;
  constexpr double kDoubt = 1.08;  // that a further launch is worth it
  const auto sums = static_cast<double>(tile.bm * tile.bn);
  // Bytes of operands for each product, against what shared memory and L2 bring.
  const double mma = sums / 8192.0, feed = static_cast<double>(tile.bm + tile.bn) / 128.0;
  const int64_t tiles = plan.Tiles(tile.bm, tile.bn, tile.swap) * tile.split;
  const double of_tile = static_cast<double>(CeilDiv(steps, tile.split)) * (std::max(mma, feed) + 0.5);
  const double cost =
      static_cast<double>(CeilDiv(tiles, plan.target.sms)) * of_tile * (tile.swap ? 1.02 : 1.0);
  if (tile.split == 1) return cost;
  const double stored_and_loaded = 2 * static_cast<double>(tiles) * sums * kSumBytes;
  const double parts = (kLaunchCycles + stored_and_loaded / (plan.target.sms * kBytesOfCycle)) / kStepCycles;
  return kDoubt * (cost + parts);
}

// The tile, and the parts of the depth, that finish first.
TileDefault DefaultTile(const Plan& plan, int64_t repack, const std::vector<int64_t>& bms,
                        const std::vector<int64_t>& bns, const std::vector<int64_t>& splits) {
  TileDefault best;
  double best_cost = 0;
  for (const bool swap : {false, true}) {
    for (const int64_t bm : bms) {
      for (const int64_t bn : bns) {
        for (const int64_t split : splits) {
          const int64_t warpgroups = bm >= 128 ? 2 : 1;
          const TileDefault tile = {bm, bn, warpgroups, swap, split};
          const Values v = ValuesOf(tile, repack);
          if (plan.Sums(bm / warpgroups, bn) > 144 || !plan.Legal(v)) continue;
          const double cost = CostOf(plan, tile, plan.Steps(v));
          if (best_cost != 0 && cost >= best_cost) continue;
          best = tile;
          best_cost = cost;
        }
      }
    }
  }
  return best;
}

int64_t MostStages(const Plan& plan, const std::vector<int64_t>& choices, Values v) {
  int64_t most = choices.front();
  for (const int64_t stages : choices) {
    v["stages"] = stages;
    if (plan.SharedBytes(v) <= plan.target.smem_bytes) most = stages;
  }
  return most;
}

// Whether a choice that needs more shared memory is made where nothing is measured: there must be room for
// steps ahead.
bool HasRoom(const Plan& plan, Values v, const char* choice) {
  v[choice] = 1;
  v["stages"] = 3;
  return plan.Legal(v);
}

// The tile of a single axis, in a few tiles at most, that leaves the fewest places empty; 0 for others. Types
// of 8 bits have no products of any number of columns.
int64_t FittedTile(const Plan& plan, const std::vector<int64_t>& extents) {
  constexpr int64_t kLargest = 256, kFewTiles = 2, kStep = 8;
  const int64_t longest = *std::ranges::max_element(extents);
  int64_t product = 1;
  for (const int64_t extent : extents) product *= extent;
  if (product != longest || longest > kFewTiles * kLargest || DTypeBytes(plan.row.operand) == 1) return 0;
  return RoundUp(CeilDiv(longest, CeilDiv(longest, kLargest)), kStep);
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
  for (const bool swap : {false, true}) {
    const int64_t fitted = FittedTile(plan, plan.Cols(swap));
    if (fitted > tiles.front() && std::ranges::count(tiles, fitted) == 0)
      tiles.insert(std::ranges::upper_bound(tiles, fitted), fitted);
  }
  return tiles;
}

// Whether some tile of columns has them all, and fits shared memory beside steps of a.
bool CanBeStationary(const Plan& plan, Values v) {
  v["persist"] = v["stationary"] = 1;
  v["split"] = v["warpgroups"] = 1;
  v["swap"] = v["epilogue"] = v["window"] = 0;
  v["bm"] = 64;
  for (const int64_t bn : ColumnTiles(plan)) {
    v["bn"] = bn;
    if (plan.Legal(v)) return true;
  }
  return false;
}

// The copy is of an image whose pixels were folded, so that a short row of channels is all that there is.
bool IsFolded(const TensorContraction& t) {
  const auto is_folded = [](const TensorOperand& operand) {
    return operand.repack && absl::EndsWith(operand.repack->source, kFoldedImage);
  };
  return is_folded(t.a) || is_folded(t.b);
}

// Forms of the operands that the copy engine can fetch. Copies of what it can fetch anyway pay only where one
// nest of loops cannot order both tiles.
std::vector<int64_t> FormsOf(const TensorForms& forms, int64_t panel, const Anatomy& anatomy) {
  std::vector<int64_t> choices;
  const TensorContraction& direct = forms.direct;
  // wgmma turns over elements of two bytes only. Rounded operands are those of a copy.
  const bool is_along = direct.a.depth_contiguous && direct.b.depth_contiguous;
  const bool is_direct =
      direct.a.bulk && direct.b.bulk && !direct.a.rounded && (is_along || DTypeBytes(direct.a.dtype) == 2);
  if (is_direct) choices.push_back(0);
  if (!forms.repacked || !forms.repacked->a.bulk || !forms.repacked->b.bulk) return choices;
  const int64_t depth = anatomy.stage(direct.stage).reduce_axes[forms.repacked->depth.back()]->extent;
  const bool has_order = direct.a.depth_contiguous || !direct.b.depth_contiguous;
  const bool is_deep = 2 * depth >= panel || IsFolded(*forms.repacked);
  if (is_deep && !(is_direct && has_order)) choices.push_back(1);
  return choices;
}

// Tiles that are often the best where many are legal: the largest with two warpgroups, two groups that take
// turns, and few columns for all taps of a window, also by two groups with weights that stay. Each with all
// steps ahead for which there is room.
void AddStarts(const Plan& plan, const std::vector<int64_t>& stages, const Values& defaults, Part* part) {
  const int64_t bulk_store = plan.forms.direct.bulk_store;
  for (Values start :
       {Values{{"bm", 128}, {"bn", 256}, {"warpgroups", 2}, {"groups", 1}, {"window", 0}, {"stationary", 0}},
        Values{{"bm", 128}, {"bn", 128}, {"warpgroups", 1}, {"groups", 2}, {"window", 0}, {"stationary", 0}},
        Values{{"bm", 128}, {"bn", 64}, {"warpgroups", 2}, {"groups", 1}, {"window", 1}, {"stationary", 0}},
        Values{{"bm", 256}, {"bn", 64}, {"warpgroups", 1}, {"groups", 2}, {"window", 1}, {"stationary", 1}},
        Values{{"bm", 64}, {"bn", 64}, {"warpgroups", 1}, {"groups", 2}, {"window", 1}, {"stationary", 1}}}) {
    for (const char* name : {"repack", "near"}) {
      if (defaults.contains(name)) start.Add(name, defaults.at(name));
    }
    if (start.at("window") != 0 && !plan.t(start).window) continue;
    start["swap"] = 0;
    start["panels"] = start["split"] = start["cluster"] = start["group"] = 1;
    start["epilogue"] = bulk_store;
    start["persist"] = plan.TilesOf(start) > plan.target.sms;
    start["stages"] = MostStages(plan, stages, start);
    for (const int64_t group : {8, 4}) {
      Values grouped = start;
      grouped["group"] = group;
      if (start.at("group") == 1 && start.at("persist") != 0 && plan.GroupFits(grouped)) start = grouped;
    }
    part->Start(start);
  }
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
  const int64_t repack = repacks.front();
  const TileDefault of_whole = DefaultTile(plan, repack, bms, bns, {1});
  Values v = ValuesOf(of_whole, repack);
  v["stages"] = 2;
  if (!plan.Legal(v)) return std::nullopt;
  const int64_t coarse = std::min(plan.Tiles(128, 128, false), plan.Tiles(128, 128, true));
  const std::vector<int64_t> splits = SplitsOf(plan.Depth(v), plan.panel(v), coarse, target);
  const TileDefault tile = DefaultTile(plan, repack, bms, bns, splits);
  v = ValuesOf(tile, repack);
  v["stages"] = 2;
  const bool bulk_store = forms->direct.bulk_store;
  Values with_epilogue = v;
  with_epilogue["epilogue"] = 1;
  const bool epilogue = bulk_store && plan.Legal(with_epilogue);
  v["epilogue"] = epilogue;
  v["window"] = HasRoom(plan, v, "window");
  const auto has_waves = [&](const TileDefault& of) {
    return plan.Tiles(of.bm, of.bn, of.swap) > target.sms;
  };
  const bool persist = tile.split == 1 && has_waves(tile);
  Values with_persist = v;
  with_persist["persist"] = persist;
  v["stationary"] = HasRoom(plan, with_persist, "stationary");
  const std::vector<int64_t> groups = {1, 4, 8, 16};
  int64_t default_group = 1;
  for (const int64_t group : groups) {
    Values grouped = v;
    grouped["group"] = group;
    if (group <= 8 && plan.GroupFits(grouped)) default_group = group;
  }
  part.Decide("bm", bms, tile.bm);
  part.Decide("bn", bns, tile.bn);
  part.Decide("warpgroups", {1, 2, 3}, tile.warpgroups);
  std::vector<int64_t> stages = {2, 3, 4, 5, 6, 7, 8};
  // Short steps: more of them are fetched ahead.
  if (forms->repacked && IsFolded(*forms->repacked)) stages.insert(stages.end(), {12, 16});
  part.Decide("stages", stages, MostStages(plan, stages, v));
  part.Decide("group", groups, default_group);
  part.Decide("persist", {0, 1, kStream}, persist, false);
  part.Decide("epilogue", bulk_store ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0}, epilogue, false);
  part.Decide("swap", {0, 1}, tile.swap, false);
  part.Decide("split", splits, tile.split);
  part.Decide("panels",
              plan.Depth(v) >= 8 * plan.panel(v) ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1}, 1);
  part.Decide("groups", has_waves(of_whole) ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1}, 1);
  part.Decide("repack", repacks, repack, false);
  part.Decide("cluster", {1, 2}, 1);
  if (CanBeStationary(plan, v)) part.Decide("stationary", {0, 1}, v.at("stationary"), false);
  if (HasNearBatches(*forms)) part.Decide("near", {0, 1}, 1, false);
  if (forms->direct.window || (forms->repacked && forms->repacked->window))
    part.Decide("window", {0, 1}, v.at("window"), false);
  part.legal = [plan](const Values& values) { return plan.Legal(values); };
  AddStarts(plan, stages, v, &part);
  part.emit = [plan](const Values& values, TraceBuilder* b) { Emit(plan, values, b); };
  return part;
}

}  // namespace mycc
