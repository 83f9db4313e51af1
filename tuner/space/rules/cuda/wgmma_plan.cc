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

int64_t WgmmaPlan::SharedBytes(const Values& v) const {
  const int64_t stage_bytes = (v.at("bm") + v.at("bn")) * PanelBytes(t(v)) * v.at("panels");
  const int64_t epilogue =
      v.at("epilogue") != 0 ? v.at("groups") * v.at("bm") * v.at("bn") * StoredBytes(v.at("split")) : 0;
  return stage_bytes * v.at("stages") + epilogue + kSharedOverhead;
}

int64_t SwizzleOf(int64_t row_bytes) {
  for (const int64_t swizzle : {128, 64, 32}) {
    if (row_bytes % swizzle == 0) return swizzle;
  }
  return 0;
}

int64_t WgmmaPlan::InnerTile(const Values& v, const TensorOperand& operand,
                             const std::vector<int64_t>& extents, int64_t size) const {
  return operand.depth_contiguous ? panel(v) : BestAxisTile(extents, size).back();
}

int64_t TilesOfLast(const std::vector<int64_t>& extents, int64_t size) {
  return CeilDiv(extents.back(), BestAxisTile(extents, size).back());
}

bool DifferInRows(const Values& v) { return v.at("bn") >= v.at("bm"); }

// Both blocks of a cluster are there, and the shared tile can be cut in two.
bool WgmmaPlan::ClusterFits(const Values& v) const {
  const bool swap = v.at("swap") != 0, in_rows = DifferInRows(v);
  const int64_t cluster = v.at("cluster"), own = v.at(in_rows ? "bm" : "bn"),
                shared = v.at(in_rows ? "bn" : "bm");
  if (cluster == 1) return true;
  if (TilesOfLast(in_rows ? Rows(swap) : Cols(swap), own) % cluster != 0) return false;
  const TensorContraction& product = t(v);
  if (!(in_rows != swap ? product.b : product.a).depth_contiguous) return true;
  const AxisTile tile = BestAxisTile(in_rows ? Cols(swap) : Rows(swap), shared);
  const auto outermost = std::find_if(tile.begin(), tile.end(), [](int64_t extent) { return extent > 1; });
  return outermost != tile.end() && *outermost % cluster == 0 && shared / cluster % 8 == 0;
}

bool WgmmaPlan::GroupFits(const Values& v) const {
  const int64_t cluster = DifferInRows(v) ? v.at("cluster") : 1, group = v.at("group");
  const int64_t tiles = TilesOfLast(Rows(v.at("swap") != 0), v.at("bm")) / cluster;
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
  return divides(swap ? product.cols : product.rows, BestAxisTile(Rows(swap), v.at("bm"))) &&
         divides(swap ? product.rows : product.cols, BestAxisTile(Cols(swap), v.at("bn")));
}

int64_t WgmmaPlan::GridTiles(const Values& v) const {
  const int64_t bm = v.at("bm"), cluster = v.at("cluster"), group = v.at("group");
  const bool swap = v.at("swap") != 0;
  const int64_t last = TilesOfLast(Rows(swap), bm) / (DifferInRows(v) ? cluster : 1);
  return Tiles(bm, v.at("bn"), swap) / cluster / last * CeilDiv(last, group) * group;
}

int64_t WgmmaPlan::Steps(const Values& v) const {
  int64_t steps = CeilDiv(Depth(v), bk(v));
  const std::vector<int>& depth = t(v).depth;
  for (size_t r = 0; r + 1 < depth.size(); ++r) steps *= stage().reduce_axes[depth[r]]->extent;
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
bool WgmmaPlan::HasOrder(const TensorOperand& operand, const std::vector<int>& axes, int64_t size) const {
  if (operand.depth_contiguous) return true;
  const AxisTile tile = BestAxisTile(forms.direct.Extents(anatomy, axes), size);
  for (size_t i = 0; i < axes.size(); ++i) {
    const std::vector<int>& before = operand.before_depth;
    if (tile[i] > 1 && std::count(before.begin(), before.end(), axes[i]) > 0) return false;
  }
  return true;
}

bool WgmmaPlan::Legal(const Values& v) const {
  const int64_t bm = v.at("bm"), bn = v.at("bn"), warpgroups = v.at("warpgroups");
  const bool swap = v.at("swap") != 0;
  if (bm % (64 * warpgroups) != 0) return false;
  const bool crowded = warpgroups > 2;  // compiled for 128 registers each, and then given 160
  if (Sums(bm / warpgroups, bn) > (crowded ? 96 : kAccumulators)) return false;
  if (SharedBytes(v) > target.smem_bytes) return false;
  if (!EndsWithRuns(v)) return false;
  const TensorContraction& product = t(v);
  const TensorOperand &a = swap ? product.b : product.a, &b = swap ? product.a : product.b;
  // Tiles are staged in the order of one nest of loops: rows, depth and columns cannot be both before and
  // after each other.
  if (!a.depth_contiguous && b.depth_contiguous) return false;
  if (!HasOrder(a, swap ? product.cols : product.rows, bm) ||
      !HasOrder(b, swap ? product.rows : product.cols, bn))
    return false;
  const int64_t element = DTypeBytes(row.operand);
  if (SwizzleOf(InnerTile(v, a, Rows(swap), bm) * element) == 0 ||
      SwizzleOf(InnerTile(v, b, Cols(swap), bn) * element) == 0)
    return false;
  for (const int64_t tile : BestAxisTile(Rows(swap), bm)) {
    if (tile > 256) return false;
  }
  if (v.at("epilogue") != 0) {
    // The tile's rows in memory run along the output's last axis.
    const int64_t row = BestAxisTile(Cols(swap), bn).back() * StoredBytes(v.at("split"));
    if (swap || SwizzleOf(row) == 0 || !TilesGroups(v)) return false;
  }
  if (v.at("split") > 1 && (PartsOf(Depth(v), v.at("split"), bk(v)) != v.at("split") || v.at("persist") != 0))
    return false;
  const int64_t tiles = Tiles(bm, bn, swap);
  if (v.at("persist") == 1 && tiles <= target.sms) return false;
  if (v.at("persist") == kStream && (v.at("cluster") != 1 || v.at("groups") != 1 || Groups(v).groups == 0))
    return false;
  if (!ClusterFits(v)) return false;
  // Groups that take turns are one warpgroup each.
  if (v.at("groups") > 1 && (v.at("persist") == 0 || warpgroups != 1 || tiles < int64_t{2} * target.sms))
    return false;
  return GroupFits(v);
}

}  // namespace mycc
