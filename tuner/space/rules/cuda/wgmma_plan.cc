#include "tuner/space/rules/cuda/wgmma_plan.h"

#include <algorithm>

#include "tuner/space/rules/cuda/split_depth.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

constexpr int64_t kLeastPanelBytes = 32;
constexpr int64_t kAccumulators = 200;  // registers of a thread, at most
constexpr int64_t kSharedOverhead = 2048;

}  // namespace

int64_t WgmmaPlan::PanelBytes(const TensorContraction& t) const {
  int64_t extent = PowerAtLeast(stage().reduce_axes[t.depth.back()]->extent);
  for (const TensorOperand* operand : {&t.a, &t.b}) {
    if (operand->run > 0) extent = std::min(extent, LowestBit(operand->run));
  }
  return std::clamp(extent * DTypeBytes(row.operand), kLeastPanelBytes, kPanelBytes);
}

bool WgmmaPlan::EndsWithRuns(const Values& v) const {
  const int64_t step = v.at("split") > 1 ? PartDepth(Depth(v), v.at("split"), bk(v)) : bk(v);
  return t(v).a.run % step == 0 && t(v).b.run % step == 0;
}

const TapWindow* WgmmaPlan::window(const Values& v) const {
  const bool has_window = v.contains("window") && v.at("window") != 0;
  return has_window && t(v).window ? &*t(v).window : nullptr;
}

int64_t WgmmaPlan::ProductDepth(const Values& v) const {
  const TapWindow* taps = window(v);
  return taps != nullptr && taps->joined >= 0 ? taps->depth : bk(v);
}

bool WgmmaPlan::IsStationary(const Values& v) const {
  return v.contains("stationary") && v.at("stationary") != 0;
}

AxisTile WgmmaPlan::RowTile(const Values& v) const {
  const bool swap = v.at("swap") != 0;
  const std::vector<int64_t> rows = Rows(swap);
  const TapWindow* taps = swap ? nullptr : window(v);
  return taps != nullptr ? WindowTile(rows, v.at("bm"), *taps) : BestAxisTile(rows, v.at("bm"));
}

AxisTile WgmmaPlan::ColTile(const Values& v) const {
  return BestAxisTile(Cols(v.at("swap") != 0), v.at("bn"));
}

int64_t WgmmaPlan::TilesOf(const Values& v) const {
  const bool swap = v.at("swap") != 0;
  int64_t tiles = mycc::TilesOf(Rows(swap), RowTile(v)) * mycc::TilesOf(Cols(swap), ColTile(v));
  for (const int64_t extent : forms.direct.Extents(anatomy, forms.direct.batch)) tiles *= extent;
  return tiles;
}

int64_t WgmmaPlan::SharedBytes(const Values& v) const {
  int64_t rows = v.at("bm"), columns = v.at("bn");
  if (const TapWindow* taps = window(v)) {
    rows += taps->reach * (rows / RowTile(v)[taps->axis]);
    columns *= stage().reduce_axes[taps->taps]->extent;
  }
  const int64_t row_bytes = ProductDepth(v) * DTypeBytes(row.operand);
  const int64_t epilogue =
      v.at("epilogue") != 0 ? v.at("groups") * v.at("bm") * v.at("bn") * StoredBytes(v.at("split")) : 0;
  const int64_t slots_of_b = IsStationary(v) ? Steps(v) : v.at("stages");
  return (rows * v.at("stages") + columns * slots_of_b) * row_bytes + epilogue + kSharedOverhead;
}

int64_t SwizzleOf(int64_t row_bytes) {
  for (const int64_t swizzle : {128, 64, 32}) {
    if (row_bytes % swizzle == 0) return swizzle;
  }
  return 0;
}

int64_t WgmmaPlan::InnerTile(const Values& v, const TensorOperand& operand, const AxisTile& tile) const {
  if (!operand.depth_contiguous) return tile.back();
  return window(v) != nullptr ? ProductDepth(v) : panel(v);
}

int64_t TilesOfLast(const std::vector<int64_t>& extents, const AxisTile& tile) {
  return CeilDiv(extents.back(), tile.back());
}

bool DifferInRows(const Values& v) { return v.at("bn") >= v.at("bm"); }

// Both blocks of a cluster are there, and the shared tile can be cut in two.
bool WgmmaPlan::ClusterFits(const Values& v) const {
  const bool swap = v.at("swap") != 0, in_rows = DifferInRows(v);
  const int64_t cluster = v.at("cluster");
  int64_t shared = v.at(in_rows ? "bn" : "bm");
  if (cluster == 1) return true;
  if (TilesOfLast(in_rows ? Rows(swap) : Cols(swap), in_rows ? RowTile(v) : ColTile(v)) % cluster != 0)
    return false;
  const TensorContraction& product = t(v);
  if (!(in_rows != swap ? product.b : product.a).depth_contiguous) return true;
  AxisTile tile = in_rows ? ColTile(v) : RowTile(v);
  if (const TapWindow* taps = window(v)) {
    // The taps are the outermost dimension of the weights' tile; the axis that they shift is that of pixels.
    const int64_t outermost =
        in_rows ? stage().reduce_axes[taps->taps]->extent : tile[taps->axis] + taps->reach;
    shared = shared / (in_rows ? 1 : tile[taps->axis]) * outermost;
    tile = {outermost};
  }
  const auto outermost = std::ranges::find_if(tile, [](int64_t extent) { return extent > 1; });
  return outermost != tile.end() && *outermost % cluster == 0 && shared / cluster % 8 == 0;
}

bool WgmmaPlan::GroupFits(const Values& v) const {
  const int64_t cluster = DifferInRows(v) ? v.at("cluster") : 1, group = v.at("group");
  const int64_t tiles = TilesOfLast(Rows(v.at("swap") != 0), RowTile(v)) / cluster;
  const int64_t groups = (tiles + group - 1) / group;
  return group == 1 || groups * group * 16 <= tiles * 17;
}

// No tile of the result has places beyond the end of a group of columns, where the next one's are.
bool WgmmaPlan::TilesGroups(const Values& v) const {
  const std::optional<GroupedAxis>& groups = anatomy.info(forms.direct.stage).contraction->groups;
  if (!groups) return true;
  const bool swap = v.at("swap") != 0;
  const auto divides = [&](const std::vector<int>& axes, const AxisTile& tile) {
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i] == groups->axis + 1 && groups->extent % tile[i] != 0) return false;
    }
    return true;
  };
  const TensorContraction& product = t(v);
  return divides(swap ? product.cols : product.rows, RowTile(v)) &&
         divides(swap ? product.rows : product.cols, ColTile(v));
}

// The pixels lie as wgmma reads them at each tap: those of a tile's other axes are whole swizzles, and both
// operands run along the channels.
bool WgmmaPlan::WindowFits(const Values& v) const {
  const TapWindow* taps = window(v);
  if (taps == nullptr) return !v.contains("window") || v.at("window") == 0;
  const TensorContraction& product = t(v);
  if (v.at("swap") != 0) return false;
  const AxisTile tile = RowTile(v);
  constexpr int64_t kMostOfBox = 256;
  if (tile.empty() || tile[taps->axis] == 1 || tile[taps->axis] + taps->reach > kMostOfBox ||
      !product.a.depth_contiguous || !product.b.depth_contiguous)
    return false;
  if (taps->joined < 0) return true;
  return v.at("split") == 1 && v.at("panels") == 1 && product.a.run == 0 && product.b.run == 0;
}

// A persistent block has the columns of b in one tile, over its whole depth, which the copy engine fetches as
// one box.
bool WgmmaPlan::StationaryFits(const Values& v) const {
  if (!IsStationary(v)) return true;
  constexpr size_t kMostDims = 5;
  const TensorContraction& product = t(v);
  for (const int64_t extent : forms.direct.Extents(anatomy, forms.direct.batch)) {
    if (extent != 1) return false;
  }
  // Panels have a dimension of their own, and no zeros after the last one.
  const bool has_panels = CeilDiv(Depth(v), bk(v)) > 1;
  if (has_panels && Depth(v) % bk(v) != 0) return false;
  return product.a.depth_contiguous && product.b.depth_contiguous && mycc::TilesOf(Cols(), ColTile(v)) == 1 &&
         product.b.rank + (has_panels ? 1 : 0) <= kMostDims;
}

int64_t WgmmaPlan::GridTiles(const Values& v) const {
  const int64_t cluster = v.at("cluster"), group = v.at("group");
  const int64_t last = TilesOfLast(Rows(v.at("swap") != 0), RowTile(v)) / (DifferInRows(v) ? cluster : 1);
  return TilesOf(v) / cluster / last * CeilDiv(last, group) * group;
}

int64_t WgmmaPlan::Steps(const Values& v) const {
  int64_t steps = CeilDiv(Depth(v), bk(v));
  const std::vector<int>& depth = t(v).depth;
  const TapWindow* taps = window(v);
  for (size_t r = 0; r + 1 < depth.size(); ++r) {
    const bool is_in_step = taps != nullptr && (depth[r] == taps->taps || depth[r] == taps->joined);
    if (!is_in_step) steps *= stage().reduce_axes[depth[r]]->extent;
  }
  return steps;
}

// A round for the rest takes as long as its largest share of a tile, and adding up others' sums. Few tiles
// for each group keep more blocks at the same depth of tiles beside each other.
StreamKGroups WgmmaPlan::Groups(const Values& v) const {
  constexpr int64_t kMostTiles = 6, kMostMembers = 12;
  constexpr double kOfSums = 0.04, kWorthwhile = 0.85;  // of the time of a tile
  const int64_t tiles = GridTiles(v), rest = tiles % target.sms, steps = Steps(v);
  StreamKGroups best;
  double shortest = kWorthwhile;
  for (int64_t of_group = 1; of_group <= std::min(rest, kMostTiles); ++of_group) {
    if (rest % of_group != 0) continue;
    const int64_t groups = rest / of_group;
    for (int64_t members = of_group + 1; members <= std::min(target.sms / groups, kMostMembers); ++members) {
      if (of_group * steps < 2 * members) break;
      const double share = static_cast<double>(of_group) / static_cast<double>(members);
      const double time = share + kOfSums * std::ceil(1 / share) + (of_group > 1 ? kOfSums : 0);
      if (time >= shortest) continue;
      shortest = time;
      best = {groups, members};
    }
  }
  return best;
}

// The operand's tile lies in the order of its dimensions: where the depth is staged first, no axis that lies
// in front of it has several elements in a tile.
bool WgmmaPlan::HasOrder(const TensorOperand& operand, const std::vector<int>& axes,
                         const AxisTile& tile) const {
  if (operand.depth_contiguous) return true;
  for (size_t i = 0; i < axes.size(); ++i) {
    const std::vector<int>& before = operand.before_depth;
    if (tile[i] > 1 && std::ranges::count(before, axes[i]) > 0) return false;
  }
  return true;
}

bool WgmmaPlan::Legal(const Values& v) const {
  const int64_t bm = v.at("bm"), bn = v.at("bn"), warpgroups = v.at("warpgroups");
  const int64_t persist = v.at("persist"), groups = v.at("groups"), cluster = v.at("cluster");
  const bool swap = v.at("swap") != 0;
  // The cheapest conditions come first: a search draws thousands of points, and most are not legal.
  if (bm % (64 * warpgroups) != 0) return false;
  // Groups that take turns are one warpgroup each.
  if (groups > 1 && (persist == 0 || warpgroups != 1)) return false;
  if (persist == kStream && (cluster != 1 || groups != 1)) return false;
  if (v.at("split") > 1 && persist != 0) return false;
  if (swap && v.at("epilogue") != 0) return false;
  if (IsStationary(v) && (persist != 1 || swap || cluster != 1)) return false;
  const bool crowded = warpgroups > 2;  // compiled for 128 registers each, and then given 160
  if (Sums(bm / warpgroups, bn) > (crowded ? 96 : kAccumulators)) return false;
  if (!WindowFits(v) || !StationaryFits(v) || SharedBytes(v) > target.smem_bytes) return false;
  if (!EndsWithRuns(v)) return false;
  const TensorContraction& product = t(v);
  const TensorOperand &a = swap ? product.b : product.a, &b = swap ? product.a : product.b;
  // Tiles are staged in the order of one nest of loops: rows, depth and columns cannot be both before and
  // after each other.
  if (!a.depth_contiguous && b.depth_contiguous) return false;
  const AxisTile row_tile = RowTile(v), col_tile = ColTile(v);
  if (!HasOrder(a, swap ? product.cols : product.rows, row_tile) ||
      !HasOrder(b, swap ? product.rows : product.cols, col_tile))
    return false;
  const int64_t element = DTypeBytes(row.operand);
  if (SwizzleOf(InnerTile(v, a, row_tile) * element) == 0 ||
      SwizzleOf(InnerTile(v, b, col_tile) * element) == 0)
    return false;
  for (const int64_t tile : row_tile) {
    if (tile > 256) return false;
  }
  if (v.at("epilogue") != 0) {
    // The tile's rows in memory run along the output's last axis.
    const int64_t row = col_tile.back() * StoredBytes(v.at("split"));
    if (SwizzleOf(row) == 0 || !TilesGroups(v)) return false;
  }
  if (v.at("split") > 1 && PartsOf(Depth(v), v.at("split"), bk(v)) != v.at("split")) return false;
  const int64_t tiles = TilesOf(v);
  if (persist == 1 && tiles <= target.sms) return false;
  if (persist == kStream && Groups(v).groups == 0) return false;
  if (!ClusterFits(v)) return false;
  if (groups > 1 && tiles < int64_t{2} * target.sms) return false;
  return GroupFits(v);
}

}  // namespace mycc
