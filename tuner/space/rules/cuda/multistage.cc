// The GPU rule for contractions by mma.sync, with threads that copy ahead by cp.async. It serves Ampere and
// Ada, and on Hopper the operands that the copy engine cannot fetch: rows that are not 16-byte aligned,
// images of few channels. Such operands may also be repacked first (operand.h), and the depth split where
// there are few tiles (split_depth.h).
//
//   block (tiles of rows, columns and batches, grouped for L2):
//     for depth tiles: all threads copy the tiles of a later step; warps multiply fragments of this one's
//     epilogue on the accumulators
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tuner/space/rules/cuda/split_depth.h"
#include "tuner/space/rules/cuda/tensor_core.h"

namespace mycc {
namespace {

constexpr int64_t kAccumulators = 128;  // registers of a thread, at most

constexpr int64_t kPadBytes = 16;

struct Plan : TensorPlan {
  // How a tile of the depth is cut: as much as there is of the last axis, then of those before it, so that
  // images of few channels fill a tile with several pixels of the window.
  AxisTile DepthTile(const Values& v) const {
    const std::vector<int>& depth = t(v).depth;
    int64_t bk = v.at("bk");
    AxisTile tile;
    for (auto r = depth.rbegin(); r != depth.rend(); ++r) {
      tile.insert(tile.begin(), std::min(bk, PowerAtLeast(stage().reduce_axes[*r]->extent)));
      bk /= tile.front();
    }
    tile.front() *= bk;
    return tile;
  }
};

// A tile in shared memory: rows up to 128 bytes are swizzled, longer ones padded. Rows along another
// dimension than the depth, of elements that ldmatrix cannot turn over, are read by lanes on 4 rows and 8
// elements: padded so that these are in different banks.
struct TileLayout {
  int64_t pad = 0, swizzle = 0;
};
TileLayout LayoutOf(int64_t row_elements, int64_t element, bool depth_contiguous) {
  if (element == 4 && !depth_contiguous) return {2 * kPadBytes / element, 0};
  const int64_t bytes = row_elements * element;
  if (bytes == 32 || bytes == 64 || bytes == 128) return {0, bytes};
  return {kPadBytes / element, 0};
}

int64_t InnerTile(const TensorOperand& operand, int64_t bk, const std::vector<int64_t>& extents,
                  int64_t size) {
  return operand.depth_contiguous ? bk : BestAxisTile(extents, size).back();
}

int64_t SharedBytes(const Plan& plan, const Values& v) {
  const int64_t element = DTypeBytes(plan.row.operand), bk = v.at("bk");
  const auto bytes = [&](const TensorOperand& operand, const std::vector<int64_t>& extents, int64_t size) {
    const int64_t row = InnerTile(operand, bk, extents, size);
    return size * bk / row * (row + LayoutOf(row, element, operand.depth_contiguous).pad) * element + 1024;
  };
  return v.at("stages") *
         (bytes(plan.t(v).a, plan.Rows(), v.at("bm")) + bytes(plan.t(v).b, plan.Cols(), v.at("bn")));
}

// Padding sets the rows of the tile's last dimension apart: elements that the instruction takes in one go
// must lie within one row.
bool PadsWholeRows(const Plan& plan, const Values& v, const TensorOperand& operand,
                   const std::vector<int64_t>& extents, int64_t size) {
  const int64_t element = DTypeBytes(plan.row.operand), bk = v.at("bk");
  const int64_t row = InnerTile(operand, bk, extents, size);
  if (LayoutOf(row, element, operand.depth_contiguous).pad == 0) return true;
  return operand.depth_contiguous ? plan.DepthTile(v).back() == bk : row == size;
}

bool Legal(const Plan& plan, const Values& v) {
  const int64_t bm = v.at("bm"), bn = v.at("bn"), wr = v.at("row_warps"), wc = v.at("column_warps");
  if (wr * wc > 16 || bm % (16 * wr) != 0 || bn % (16 * wc) != 0) return false;
  const int64_t sums = plan.row.partial_depth > 0 ? 2 : 1;
  if (sums * bm * bn / (32 * wr * wc) > kAccumulators) return false;
  if (SharedBytes(plan, v) > plan.target.smem_bytes) return false;
  if (!PadsWholeRows(plan, v, plan.t(v).a, plan.Rows(), bm) ||
      !PadsWholeRows(plan, v, plan.t(v).b, plan.Cols(), bn))
    return false;
  // One nest of loops orders both tiles; ldmatrix turns over elements of two bytes only.
  const bool a_along = plan.t(v).a.depth_contiguous, b_along = plan.t(v).b.depth_contiguous;
  if (!a_along && (b_along || DTypeBytes(plan.row.operand) == 1)) return false;
  if (!b_along && DTypeBytes(plan.row.operand) == 1) return false;
  const int64_t split = v.at("split");
  if (split > 1 && PartsOf(plan.Depth(v), split, plan.DepthTile(v).back()) != split) return false;
  return v.at("bk") == plan.row.k || v.at("bk") < 2 * PointsOf(plan.stage().reduce_axes);
}

void Emit(const Plan& plan, const Values& v, TraceBuilder* b) {
  const TensorContraction& t = plan.t(v);
  const int64_t bk = v.at("bk"), element = DTypeBytes(plan.row.operand);
  const bool split = v.at("split") > 1;
  const AxisTile depth_tile = plan.DepthTile(v);
  const StagedBuffers buffers = EmitOperands(t, plan.anatomy.name(t.stage), b);
  const int64_t part_depth = PartDepth(plan.Depth(v), v.at("split"), depth_tile.back());
  const std::string name =
      split ? EmitParts(plan.anatomy, t.stage, t.depth.back(), part_depth, b) : plan.anatomy.name(t.stage);
  EmitGroups(plan.anatomy, t.stage, name, b);
  std::vector<std::string> grid;
  if (split) grid.push_back(absl::StrCat(name, ".v"));
  Append(&grid, BatchLoops(plan.anatomy, t, name, v, /*innermost=*/false));
  const TiledLoops rows = SplitAxes(plan.stage(), name, t.rows, BestAxisTile(plan.Rows(), v.at("bm")), b);
  const TiledLoops cols = SplitAxes(plan.stage(), name, t.cols, BestAxisTile(plan.Cols(), v.at("bn")), b);
  Append(&grid, rows.outer);
  Append(&grid, cols.outer);
  Append(&grid, BatchLoops(plan.anatomy, t, name, v, /*innermost=*/true));

  std::vector<std::string> order = grid, depth;
  for (size_t r = 0; r < t.depth.size(); ++r) {
    const std::string loop = LoopOf(name, plan.stage().reduce_axes[t.depth[r]]);
    const bool last = r + 1 == t.depth.size();
    if (depth_tile[r] > 1 || last) b->Split(loop, {depth_tile[r]});
    order.push_back(depth_tile[r] > 1 || last ? SubLoop(loop, 0) : loop);
    if (depth_tile[r] > 1 || last) depth.push_back(SubLoop(loop, 1));
  }
  const std::string ring = order.back();
  const std::vector<std::string> tile = TileOrder(t.a, t.b, rows.inner, cols.inner, depth);
  Append(&order, tile);
  b->Reorder(order);
  const std::string blocks = b->Fuse(grid);
  b->Bind(blocks, "block");
  b->CacheWrite(name, blocks);
  if (!split) EmitEpilogue(plan.anatomy, t, b);
  const StagedBuffers tiles = StageOperands(t, buffers, name, {ring, ring, ""}, b);
  const auto lay_out = [&](const TensorOperand& operand, const std::string& staged,
                           const std::vector<int64_t>& extents, int64_t size) {
    const TileLayout layout =
        LayoutOf(InnerTile(operand, bk, extents, size), element, operand.depth_contiguous);
    b->Layout(staged, layout.pad, layout.swizzle);
  };
  lay_out(t.a, tiles.a, plan.Rows(), v.at("bm"));
  lay_out(t.b, tiles.b, plan.Cols(), v.at("bn"));
  b->TensorizeTile(tile.front(), plan.row.name, v.at("row_warps"), v.at("column_warps"));
  b->Pipeline(ring, "threads", v.at("stages"));
  if (split) EmitSumOfParts(plan.anatomy, t, b);
}

struct TileDefault {
  int64_t bm = 32, bn = 32, row_warps = 1, column_warps = 1;
};

// The tile that finishes first: products at their rate, operands from L2, waves of blocks.
TileDefault DefaultTile(const Plan& plan, int64_t repack, const std::vector<int64_t>& bms,
                        const std::vector<int64_t>& bns) {
  constexpr int64_t kGrids[][2] = {{2, 2}, {1, 4}, {4, 1}, {4, 2}, {2, 4}, {1, 2}, {2, 1}, {1, 1}};
  TileDefault best;
  double best_cost = 0;
  for (const int64_t bm : bms) {
    for (const int64_t bn : bns) {
      for (const auto& [wr, wc] : kGrids) {
        const Values v = {{"bm", bm},        {"bn", bn},           {"bk", plan.row.k}, {"stages", 2},
                          {"row_warps", wr}, {"column_warps", wc}, {"split", 1},       {"repack", repack}};
        const int64_t warp_rows = bm / wr, warp_columns = bn / wc;
        if (!Legal(plan, v) || warp_rows > 64 || warp_columns > 64) continue;
        const int64_t tiles = plan.Tiles(bm, bn);
        const int64_t turns = (tiles + plan.target.sms - 1) / plan.target.sms;
        const auto waves = static_cast<double>(turns);
        const double multiply = static_cast<double>(bm * bn) / 4096, feed = static_cast<double>(bm + bn) / 96,
                     fragments =
                         static_cast<double>(bm * bn) / 4096 * 16 *
                         (1.0 / static_cast<double>(warp_rows) + 1.0 / static_cast<double>(warp_columns));
        const double idle = wr * wc < 4 ? 0.3 : 0;
        const double cost = waves * (std::max({multiply, feed, fragments}) * (1 + idle) + 0.3);
        if (best_cost != 0 && cost >= best_cost) continue;
        best = {bm, bn, wr, wc};
        best_cost = cost;
      }
    }
  }
  return best;
}

// Element by element, the operands' tiles arrive before another launch would begin: each SM loads and stores
// some 16 elements in a cycle.
bool ArriveSoon(const TensorPlan& plan) {
  constexpr int64_t kTile = 64, kElementsOfCycle = 16, kCyclesOfLaunch = 4000;
  const int64_t depth = PointsOf(plan.stage().reduce_axes);
  const int64_t elements = plan.Tiles(kTile, kTile) * 2 * kTile * depth;
  return elements <= kElementsOfCycle * kCyclesOfLaunch * std::max(plan.target.sms, 1);
}

// Which forms of the operands there are, the preferred first: copies of what would arrive in pieces of less
// than half a vector.
std::vector<int64_t> FormsOf(const TensorForms& forms, bool needs_depth, bool arrive_soon) {
  const TensorOperand &a = forms.direct.a, &b = forms.direct.b;
  const bool can_direct =
      needs_depth ? a.depth_contiguous && b.depth_contiguous : a.depth_contiguous || !b.depth_contiguous;
  if (!can_direct && !forms.repacked) return {};
  if (!can_direct) return {1};
  if (!forms.repacked) return {0};
  const bool in_pieces = std::min(a.vector_bytes, b.vector_bytes) < kAccessBytes / 2;
  return in_pieces && !arrive_soon ? std::vector<int64_t>{1, 0} : std::vector<int64_t>{0, 1};
}

}  // namespace

std::optional<Part> MultistagePart(const Anatomy& anatomy, const Group& group, const Target& target) {
  const std::optional<TensorForms> forms = FindTensorForms(anatomy, group);
  if (!forms) return std::nullopt;
  const auto row = TensorInstruction(forms->direct, anatomy.stage(group.anchor).output->dtype,
                                     InstructionClass::kWarp, target);
  if (!row) return std::nullopt;
  const Plan plan{{anatomy, *forms, *row, target}};
  std::vector<int64_t> repacks = FormsOf(*forms, DTypeBytes(row->operand) == 1, ArriveSoon(plan));
  if (repacks.empty()) return std::nullopt;
  const int64_t repack = repacks.front();
  std::ranges::sort(repacks);
  Part part;
  part.prefix = absl::StrCat(anatomy.name(group.anchor), ".");
  part.rule = "multistage";
  const std::vector<int64_t> bms = {16, 32, 64, 128, 256}, bns = {16, 32, 64, 128, 256};
  const TileDefault tile = DefaultTile(plan, repack, bms, bns);
  Values v = {{"bm", tile.bm},
              {"bn", tile.bn},
              {"bk", row->k},
              {"stages", 2},
              {"row_warps", tile.row_warps},
              {"column_warps", tile.column_warps},
              {"split", 1},
              {"repack", repack}};
  if (!Legal(plan, v)) return std::nullopt;
  const int64_t depth = row->k;
  std::vector<int64_t> bks = {depth, 2 * depth, 4 * depth};
  // Single elements had better arrive all at once.
  const bool by_element = std::min(forms->direct.a.vector_bytes, forms->direct.b.vector_bytes) < 4;
  if (by_element && (row->partial_depth == 0 || 8 * depth <= row->partial_depth)) bks.push_back(8 * depth);
  for (const int64_t bk : {bks[1], bks[2]}) {
    for (const int64_t stages : {3, 4}) {
      Values deeper = v;
      deeper["bk"] = bk;
      deeper["stages"] = stages;
      if (Legal(plan, deeper) && SharedBytes(plan, deeper) <= target.smem_bytes / 2) v = deeper;
    }
  }
  part.Decide("bm", bms, tile.bm);
  part.Decide("bn", bns, tile.bn);
  part.Decide("bk", bks, v.at("bk"));
  part.Decide("row_warps", {1, 2, 4}, tile.row_warps);
  part.Decide("column_warps", {1, 2, 4}, tile.column_warps);
  part.Decide("stages", {2, 3, 4, 5}, v.at("stages"));
  part.Decide("split", SplitsOf(plan.Depth(v), int64_t{2} * row->k, plan.Tiles(64, 64), target), 1);
  part.Decide("repack", repacks, repack, false);
  if (HasNearBatches(*forms)) part.Decide("near", {0, 1}, 1, false);
  part.legal = [plan](const Values& values) { return Legal(plan, values); };
  part.emit = [plan](const Values& values, TraceBuilder* b) { Emit(plan, values, b); };
  return part;
}

}  // namespace mycc
