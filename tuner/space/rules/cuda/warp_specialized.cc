// Contractions by wgmma, fed by the copy engine (sm_90a): GEMM, batched GEMM, and convolution as implicit
// GEMM, whose tiles are boxes of pixels.
//
//   block (tiles of rows, columns and batches, grouped for L2; one each, or as many as the GPU has SMs):
//     copy:    for depth tiles: tiles of a and b into the ring
//     compute: for depth tiles: wgmma on bm x bn x bk
//              epilogue on the accumulators; the tile leaves through shared memory
//
// Two neighbours may be a cluster, and each fetch half of the operand that both need.
//
// Where there are few tiles, the depth is split (split_depth.h); what the copy engine cannot fetch is
// repacked first (operand.h).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tuner/space/rules/cuda/split_depth.h"
#include "tuner/space/rules/cuda/tensor_core.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

constexpr int64_t kPanelBytes = 128;  // of the widest swizzle: the depth of a tile
constexpr int64_t kLeastPanelBytes = 32;
constexpr int64_t kAccumulators = 200;  // registers of a thread, at most
constexpr int64_t kSharedOverhead = 2048;

struct Plan {
  Anatomy anatomy;
  TensorForms forms;
  Instruction row;
  Target target;

  const TensorContraction& t(const Values& v) const { return forms.at(v.at("repack")); }
  const Stage& stage() const { return anatomy.product(forms.direct.stage); }
  // The depth of a tile: one panel of a swizzle, or two. Shallow sums, and runs that others follow (the
  // groups of a convolution), have narrower ones.
  int64_t bk(const Values& v) const { return v.at("panels") * panel(v); }
  int64_t panel(const Values& v) const { return PanelBytes(t(v)) / DTypeBytes(row.operand); }
  int64_t PanelBytes(const TensorContraction& t) const {
    int64_t extent = PowerAtLeast(stage().reduce_axes[t.depth.back()]->extent);
    for (const TensorOperand* operand : {&t.a, &t.b}) {
      if (operand->run > 0) extent = std::min(extent, LowestBit(operand->run));
    }
    return std::clamp(extent * DTypeBytes(row.operand), kLeastPanelBytes, kPanelBytes);
  }
  // Tiles of the depth, and parts of it, end where a run does.
  bool EndsWithRuns(const Values& v) const {
    const int64_t step = v.at("split") > 1 ? PartDepth(Depth(v), v.at("split"), bk(v)) : bk(v);
    return t(v).a.run % step == 0 && t(v).b.run % step == 0;
  }
  std::vector<int64_t> Rows(bool swap) const {
    return forms.direct.Extents(anatomy, swap ? forms.direct.cols : forms.direct.rows);
  }
  std::vector<int64_t> Cols(bool swap) const {
    return forms.direct.Extents(anatomy, swap ? forms.direct.rows : forms.direct.cols);
  }
  int64_t Batches() const {
    int64_t batches = 1;
    for (const int64_t extent : forms.direct.Extents(anatomy, forms.direct.batch)) batches *= extent;
    return batches;
  }
  // Registers of a thread for its sums, and for partial ones: of 64 rows and at most 128 columns.
  int64_t Sums(int64_t bm, int64_t bn) const {
    return bm / 64 * bn / 2 + (row.partial_depth == 0 ? 0 : bn > 128 ? bn / 4 : bn / 2);
  }
  int64_t Depth(const Values& v) const { return stage().reduce_axes[t(v).depth.back()]->extent; }
  // Of an element that a tile of the matrix product is stored as.
  int64_t StoredBytes(int64_t split) const {
    return DTypeBytes(split > 1 ? stage().output->dtype : forms.direct.output);
  }
  int64_t Tiles(int64_t bm, int64_t bn, bool swap) const {
    return TilesOf(Rows(swap), BestAxisTile(Rows(swap), bm)) *
           TilesOf(Cols(swap), BestAxisTile(Cols(swap), bn)) * Batches();
  }
  int64_t SharedBytes(const Values& v) const {
    const int64_t stage_bytes = (v.at("bm") + v.at("bn")) * PanelBytes(t(v)) * v.at("panels");
    const int64_t epilogue =
        v.at("epilogue") != 0 ? v.at("groups") * v.at("bm") * v.at("bn") * StoredBytes(v.at("split")) : 0;
    return stage_bytes * v.at("stages") + epilogue + kSharedOverhead;
  }
};

// Elements along a tile's rows in memory, in bytes: the widest swizzle that divides them.
int64_t SwizzleOf(int64_t row_bytes) {
  for (const int64_t swizzle : {128, 64, 32}) {
    if (row_bytes % swizzle == 0) return swizzle;
  }
  return 0;
}

// The innermost tile of an operand's contiguous axis, in elements.
int64_t InnerTile(const Plan& plan, const Values& v, const TensorOperand& operand,
                  const std::vector<int64_t>& extents, int64_t size) {
  return operand.depth_contiguous ? plan.panel(v) : BestAxisTile(extents, size).back();
}

int64_t TilesOfLast(const std::vector<int64_t>& extents, int64_t size) {
  return CeilDiv(extents.back(), BestAxisTile(extents, size).back());
}

// The blocks of a cluster differ along the side of the smaller tile, and share the larger one.
bool DifferInRows(const Values& v) { return v.at("bn") >= v.at("bm"); }

// Both blocks of a cluster are there, and the shared tile can be cut in two.
bool ClusterFits(const Plan& plan, const Values& v) {
  const bool swap = v.at("swap") != 0, in_rows = DifferInRows(v);
  const int64_t cluster = v.at("cluster"), own = v.at(in_rows ? "bm" : "bn"),
                shared = v.at(in_rows ? "bn" : "bm");
  if (cluster == 1) return true;
  if (TilesOfLast(in_rows ? plan.Rows(swap) : plan.Cols(swap), own) % cluster != 0) return false;
  const TensorContraction& t = plan.t(v);
  if (!(in_rows != swap ? t.b : t.a).depth_contiguous) return true;
  const AxisTile tile = BestAxisTile(in_rows ? plan.Cols(swap) : plan.Rows(swap), shared);
  const auto outermost = std::find_if(tile.begin(), tile.end(), [](int64_t extent) { return extent > 1; });
  return outermost != tile.end() && *outermost % cluster == 0 && shared / cluster % 8 == 0;
}

// Groups of tiles of the last row axis leave few places empty.
bool GroupFits(const Plan& plan, const Values& v) {
  const int64_t cluster = DifferInRows(v) ? v.at("cluster") : 1, group = v.at("group");
  const int64_t tiles = TilesOfLast(plan.Rows(v.at("swap") != 0), v.at("bm")) / cluster;
  const int64_t groups = (tiles + group - 1) / group;
  return group == 1 || groups * group * 16 <= tiles * 17;
}

// No tile of the result has places beyond the end of a group of columns, where the next one's are.
bool TilesGroups(const Plan& plan, const Values& v) {
  const std::optional<GroupedAxis>& groups = plan.anatomy.info(plan.forms.direct.stage).contraction->groups;
  if (!groups) return true;
  const bool swap = v.at("swap") != 0;
  const auto divides = [&](const std::vector<int>& axes, const AxisTile& tile) {
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i] == groups->axis + 1 && groups->extent % tile[i] != 0) return false;
    }
    return true;
  };
  const TensorContraction& t = plan.t(v);
  return divides(swap ? t.cols : t.rows, BestAxisTile(plan.Rows(swap), v.at("bm"))) &&
         divides(swap ? t.rows : t.cols, BestAxisTile(plan.Cols(swap), v.at("bn")));
}

bool Legal(const Plan& plan, const Values& v) {
  const int64_t bm = v.at("bm"), bn = v.at("bn"), warpgroups = v.at("warpgroups");
  const bool swap = v.at("swap") != 0;
  if (bm % (64 * warpgroups) != 0) return false;
  const bool crowded = warpgroups > 2;  // compiled for 128 registers each, and then given 160
  if (plan.Sums(bm / warpgroups, bn) > (crowded ? 96 : kAccumulators)) return false;
  if (plan.SharedBytes(v) > plan.target.smem_bytes) return false;
  if (!plan.EndsWithRuns(v)) return false;
  const TensorContraction& t = plan.t(v);
  const TensorOperand &a = swap ? t.b : t.a, &b = swap ? t.a : t.b;
  // Tiles are staged in the order of one nest of loops: rows, depth and columns cannot be both before and
  // after each other.
  if (!a.depth_contiguous && b.depth_contiguous) return false;
  const int64_t element = DTypeBytes(plan.row.operand);
  if (SwizzleOf(InnerTile(plan, v, a, plan.Rows(swap), bm) * element) == 0 ||
      SwizzleOf(InnerTile(plan, v, b, plan.Cols(swap), bn) * element) == 0)
    return false;
  for (const int64_t tile : BestAxisTile(plan.Rows(swap), bm)) {
    if (tile > 256) return false;
  }
  if (v.at("epilogue") != 0) {
    // The tile's rows in memory run along the output's last axis.
    const int64_t row = BestAxisTile(plan.Cols(swap), bn).back() * plan.StoredBytes(v.at("split"));
    if (swap || SwizzleOf(row) == 0 || !TilesGroups(plan, v)) return false;
  }
  if (v.at("split") > 1 &&
      (PartsOf(plan.Depth(v), v.at("split"), plan.bk(v)) != v.at("split") || v.at("persist") != 0))
    return false;
  const int64_t tiles = plan.Tiles(bm, bn, swap);
  if (v.at("persist") != 0 && tiles <= plan.target.sms) return false;
  if (!ClusterFits(plan, v)) return false;
  // Groups that take turns are one warpgroup each.
  if (v.at("groups") > 1 && (v.at("persist") == 0 || warpgroups != 1 || tiles < 2 * plan.target.sms))
    return false;
  return GroupFits(plan, v);
}

// As many thread blocks as there are SMs, or fewer where that makes the same number of rounds.
int64_t PersistentBlocks(int64_t tiles, int64_t sms) {
  const int64_t rounds = (tiles + sms - 1) / sms;
  return (tiles + rounds - 1) / rounds;
}

// Splits each axis by its tile; returns the outer and the inner loops.
struct TiledLoops {
  std::vector<std::string> outer, inner;
};
TiledLoops SplitAxes(const Plan& plan, const std::string& block, const std::vector<int>& axes,
                     const AxisTile& tile, TraceBuilder* b) {
  TiledLoops loops;
  for (size_t i = 0; i < axes.size(); ++i) {
    const std::string loop = LoopOf(block, plan.stage().axes[axes[i]]);
    b->Split(loop, {tile[i]});
    loops.outer.push_back(SubLoop(loop, 0));
    loops.inner.push_back(SubLoop(loop, 1));
  }
  return loops;
}

void Append(std::vector<std::string>* to, const std::vector<std::string>& more) {
  to->insert(to->end(), more.begin(), more.end());
}

void Emit(const Plan& plan, const Values& v, TraceBuilder* b) {
  const TensorContraction& t = plan.t(v);
  const bool split = v.at("split") > 1;
  const bool swap = v.at("swap") != 0;
  const int64_t bm = v.at("bm"), bn = v.at("bn");
  EmitOperands(t, plan.anatomy.name(t.stage), b);
  const std::string name =
      split ? EmitParts(plan.anatomy, t, PartDepth(plan.Depth(v), v.at("split"), plan.bk(v)), b)
            : plan.anatomy.name(t.stage);
  EmitGroups(plan.anatomy, t.stage, name, b);
  const TiledLoops rows = SplitAxes(plan, name, swap ? t.cols : t.rows, BestAxisTile(plan.Rows(swap), bm), b),
                   cols = SplitAxes(plan, name, swap ? t.rows : t.cols, BestAxisTile(plan.Cols(swap), bn), b);
  const std::string depth = LoopOf(name, plan.stage().reduce_axes[t.depth.back()]);
  b->Split(depth, {plan.bk(v)});

  // The blocks of a cluster.
  const int64_t cluster = v.at("cluster");
  std::vector<std::string> row_tiles = rows.outer, col_tiles = cols.outer;
  std::string rank;
  if (cluster > 1) {
    std::string& tiles = DifferInRows(v) ? row_tiles.back() : col_tiles.back();
    b->Split(tiles, {cluster});
    rank = SubLoop(tiles, 1);
    tiles = SubLoop(tiles, 0);
  }

  // The grid: batches, then tiles of columns within groups of tiles of rows, so that those that run together
  // share what L2 holds.
  std::vector<std::string> grid;
  if (split) grid.push_back(absl::StrCat(name, ".v"));
  const bool near = v.count("near") > 0 && v.at("near") != 0;
  Append(&grid, BatchLoops(plan.anatomy, t, name, near, /*innermost=*/false));
  std::string grouped;
  if (v.at("group") > 1) {
    b->Split(row_tiles.back(), {v.at("group")});
    grouped = SubLoop(row_tiles.back(), 1);
    row_tiles.back() = SubLoop(row_tiles.back(), 0);
  }
  Append(&grid, row_tiles);
  Append(&grid, col_tiles);
  if (!grouped.empty()) grid.push_back(grouped);
  Append(&grid, BatchLoops(plan.anatomy, t, name, near, /*innermost=*/true));

  // Tiles are staged in the order of these loops: contiguous along the last one of each operand's.
  const TensorOperand &a = swap ? t.b : t.a, &operand_b = swap ? t.a : t.b;
  std::vector<std::string> order = grid;
  if (cluster > 1) order.insert(order.begin(), rank);
  for (size_t r = 0; r + 1 < t.depth.size(); ++r)
    order.push_back(LoopOf(name, plan.stage().reduce_axes[t.depth[r]]));
  order.push_back(SubLoop(depth, 0));
  std::vector<std::string> tile;
  const std::string inner_depth = SubLoop(depth, 1);
  if (!a.depth_contiguous) tile.push_back(inner_depth);
  Append(&tile, rows.inner);
  if (a.depth_contiguous && !operand_b.depth_contiguous) tile.push_back(inner_depth);
  Append(&tile, cols.inner);
  if (a.depth_contiguous && operand_b.depth_contiguous) tile.push_back(inner_depth);
  Append(&order, tile);
  b->Reorder(order);
  const std::string blocks = b->Fuse(grid);
  if (cluster > 1) {
    b->Bind(rank, "block");
    b->Cluster(rank);
  }
  b->Bind(blocks, "block");
  const int64_t tiles = plan.Tiles(bm, bn, swap) / cluster;
  if (v.at("persist") != 0) {
    // Group tails make more tiles than there are.
    const int64_t row_groups = v.at("group") > 1 ? v.at("group") : 1;
    const int64_t last = TilesOfLast(plan.Rows(swap), bm) / (DifferInRows(v) ? cluster : 1);
    const int64_t padded = tiles / last * CeilDiv(last, row_groups) * row_groups;
    b->Persist(blocks, PersistentBlocks(padded, plan.target.sms / cluster));
    if (v.at("groups") > 1) b->Alternate(blocks, v.at("groups"));
  }
  b->CacheWrite(name, blocks);
  if (!split) {
    for (size_t i = 0; i + 1 < t.epilogue.size(); ++i) b->Inline(plan.anatomy.name(t.epilogue[i]));
    if (!t.epilogue.empty()) b->ReverseInline(plan.anatomy.name(t.epilogue.back()));
  }

  const std::string ring = SubLoop(depth, 0);
  const int64_t element = DTypeBytes(plan.row.operand);
  b->Stage(name, t.a.buffer, ring, "shared");
  b->Stage(name, t.b.buffer, ring, "shared");
  b->Layout(t.a.tile, 0, SwizzleOf(InnerTile(plan, v, t.a, plan.Rows(false), swap ? bn : bm) * element));
  b->Layout(t.b.tile, 0, SwizzleOf(InnerTile(plan, v, t.b, plan.Cols(false), swap ? bm : bn) * element));
  b->TensorizeTile(tile.front(), plan.row.name, v.at("warpgroups"), 1);
  b->Pipeline(ring, "bulk", v.at("stages"));
  if (v.at("epilogue") != 0) {
    b->StageWrite(absl::StrCat(name, ".w"), blocks, "shared");
    b->Layout(absl::StrCat(name, ".w.s"), 0,
              SwizzleOf(BestAxisTile(plan.Cols(swap), bn).back() * plan.StoredBytes(v.at("split"))));
  }
  if (split) EmitSumOfParts(plan.anatomy, t, b);
}

// Tiles per SM, rounded up, over what is useful: how long the last round makes all wait.
double Rounds(const Plan& plan, int64_t bm, int64_t bn, bool swap) {
  const int64_t tiles = plan.Tiles(bm, bn, swap);
  return static_cast<double>((tiles + plan.target.sms - 1) / plan.target.sms);
}

struct TileDefault {
  int64_t bm = 64, bn = 64, warpgroups = 1;
  bool swap = false;
};

// The tile that finishes first by its rounds: wgmma at its rate, slower where a tile has few columns to feed
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
        const double cost = Rounds(plan, bm, bn, swap) * (std::max(mma, feed) + 0.5) * (swap ? 1.02 : 1.0);
        Values v = {{"bm", bm},     {"bn", bn},    {"warpgroups", warpgroups},
                    {"swap", swap}, {"stages", 3}, {"epilogue", 0},
                    {"persist", 0}, {"group", 1},  {"split", 1},
                    {"panels", 1},  {"groups", 1}, {"repack", repack},
                    {"cluster", 1}};
        if (!Legal(plan, v) || (best_cost != 0 && cost >= best_cost)) continue;
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
  const Plan plan{anatomy, *forms, *row, target};
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
  if (!Legal(plan, v)) return std::nullopt;
  const bool bulk_store = forms->direct.bulk_store;
  Values with_epilogue = v;
  with_epilogue["epilogue"] = 1;
  const bool epilogue = bulk_store && Legal(plan, with_epilogue);
  v["epilogue"] = epilogue;
  const bool persist = plan.Tiles(tile.bm, tile.bn, tile.swap) > target.sms;
  const std::vector<int64_t> groups = {1, 4, 8, 16};
  int64_t default_group = 1;
  for (const int64_t group : groups) {
    Values grouped = v;
    grouped["group"] = group;
    if (group <= 8 && GroupFits(plan, grouped)) default_group = group;
  }
  const int64_t coarse = std::min(plan.Tiles(128, 128, false), plan.Tiles(128, 128, true));
  part.Decide("bm", bms, tile.bm);
  part.Decide("bn", bns, tile.bn);
  part.Decide("warpgroups", {1, 2, 3}, tile.warpgroups);
  part.Decide("stages", {2, 3, 4, 5, 6, 7, 8}, MostStages(plan, v));
  part.Decide("group", groups, default_group);
  part.Decide("persist", {0, 1}, persist, false);
  part.Decide("epilogue", bulk_store ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0}, epilogue, false);
  part.Decide("swap", {0, 1}, tile.swap, false);
  part.Decide("split", SplitsOf(plan.Depth(v), plan.panel(v), coarse, target), 1);
  part.Decide("panels",
              plan.Depth(v) >= 8 * plan.panel(v) ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1}, 1);
  part.Decide("groups", persist ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1}, 1);
  part.Decide("repack", repacks, repacks.front(), false);
  part.Decide("cluster", {1, 2}, 1);
  if (HasNearBatches(*forms)) part.Decide("near", {0, 1}, 1, false);
  part.legal = [plan](const Values& values) { return Legal(plan, values); };
  part.emit = [plan](const Values& values, TraceBuilder* b) { Emit(plan, values, b); };
  return part;
}

}  // namespace mycc
