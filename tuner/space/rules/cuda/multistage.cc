// Contractions by mma.sync, whose threads copy ahead with cp.async: Ampere and Ada, and on Hopper what the
// copy engine cannot fetch: rows that are not 16-byte aligned, images of few channels.
//
//   block (tiles of rows, columns and batches, grouped for L2):
//     for depth tiles: all threads copy the tiles of a later step; warps multiply fragments of this one's
//     epilogue on the accumulators
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tuner/space/rules/cuda/tensor_core.h"

namespace mycc {
namespace {

constexpr int64_t kAccumulators = 128;  // registers of a thread, at most

constexpr int64_t kPadBytes = 16;

struct Plan {
  Anatomy anatomy;
  TensorContraction t;
  Instruction row;
  Target target;

  const Stage& stage() const { return anatomy.stage(t.stage); }
  std::vector<int64_t> Rows() const { return t.Extents(anatomy, t.rows); }
  std::vector<int64_t> Cols() const { return t.Extents(anatomy, t.cols); }
  // How a tile of the depth is cut: as much as there is of the last axis, then of those before it, so that
  // images of few channels fill a tile with several pixels of the window.
  AxisTile DepthTile(int64_t bk) const {
    AxisTile tile;
    for (auto r = t.depth.rbegin(); r != t.depth.rend(); ++r) {
      tile.insert(tile.begin(), std::min(bk, PowerAtLeast(stage().reduce_axes[*r]->extent)));
      bk /= tile.front();
    }
    tile.front() *= bk;
    return tile;
  }
  int64_t Depth() const {
    int64_t depth = 1;
    for (const Var& axis : stage().reduce_axes) depth *= axis->extent;
    return depth;
  }
  int64_t Tiles(int64_t bm, int64_t bn) const {
    int64_t tiles = TilesOf(Rows(), BestAxisTile(Rows(), bm)) * TilesOf(Cols(), BestAxisTile(Cols(), bn));
    for (const int64_t extent : t.Extents(anatomy, t.batch)) tiles *= extent;
    return tiles;
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
         (bytes(plan.t.a, plan.Rows(), v.at("bm")) + bytes(plan.t.b, plan.Cols(), v.at("bn")));
}

bool Legal(const Plan& plan, const Values& v) {
  const int64_t bm = v.at("bm"), bn = v.at("bn"), wr = v.at("row_warps"), wc = v.at("column_warps");
  if (wr * wc > 16 || bm % (16 * wr) != 0 || bn % (16 * wc) != 0) return false;
  if (bm * bn / (32 * wr * wc) > kAccumulators) return false;
  if (SharedBytes(plan, v) > plan.target.smem_bytes) return false;
  // One nest of loops orders both tiles.
  if (!plan.t.a.depth_contiguous && plan.t.b.depth_contiguous) return false;
  return v.at("bk") == plan.row.k || v.at("bk") < 2 * plan.Depth();
}

// Images of few channels become images of whole vectors of channels first, zeros beyond the last one, in a
// launch of its own, and so does the filter: then both arrive by vectors, not channel by channel.
constexpr int64_t kChannels = 4;

bool CanPad(const Plan& plan) {
  const TensorContraction& t = plan.t;
  return t.a.inlined.size() == 1 && t.a.depth_contiguous && t.depth.size() > 1 &&
         plan.stage().reduce_axes[t.depth.back()]->extent < kChannels;
}

// The nest of block `name` that writes `rank` dimensions, channels last.
void EmitPad(const std::string& name, const std::vector<std::string>& loops, TraceBuilder* b) {
  constexpr int64_t kThreads = 256;
  b->Pad(name, static_cast<int>(loops.size()) - 1, kChannels);
  const std::string pixel = b->Fuse({loops.begin(), loops.end() - 1});
  b->Split(pixel, {kThreads});
  b->Bind(SubLoop(pixel, 0), "block");
  b->Bind(SubLoop(pixel, 1), "thread");
  b->Bind(loops.back(), "vector");
}

// The name of the padded image.
std::string EmitPaddedImage(const Plan& plan, TraceBuilder* b) {
  const int source = plan.t.a.source;
  std::vector<std::string> loops;
  for (size_t a = 0; a < plan.anatomy.stage(source).axes.size(); ++a)
    loops.push_back(plan.anatomy.Loop(source, static_cast<int>(a)));
  EmitPad(plan.anatomy.name(source), loops, b);
  return plan.anatomy.name(source);
}

// The name of the padded filter: of an input, a copy of it.
std::string EmitPaddedFilter(const Plan& plan, TraceBuilder* b) {
  const TensorOperand& filter = plan.t.b;
  if (!filter.inlined.empty() || !filter.depth_contiguous || filter.shape.back() >= kChannels)
    return filter.buffer;
  b->CacheRead(filter.buffer, plan.anatomy.name(plan.t.stage), "root", "local");
  const std::string name = absl::StrCat(filter.buffer, ".r");
  std::vector<std::string> loops;
  for (size_t d = 0; d < filter.shape.size(); ++d) loops.push_back(absl::StrCat(name, ".a", d));
  EmitPad(name, loops, b);
  return name;
}

std::vector<std::string> SplitAxes(const Plan& plan, const std::vector<int>& axes, const AxisTile& tile,
                                   std::vector<std::string>* outer, TraceBuilder* b) {
  std::vector<std::string> inner;
  for (size_t i = 0; i < axes.size(); ++i) {
    const std::string loop = plan.anatomy.Loop(plan.t.stage, axes[i]);
    b->Split(loop, {tile[i]});
    outer->push_back(SubLoop(loop, 0));
    inner.push_back(SubLoop(loop, 1));
  }
  return inner;
}

void Append(std::vector<std::string>* to, const std::vector<std::string>& more) {
  to->insert(to->end(), more.begin(), more.end());
}

void Emit(const Plan& plan, const Values& v, TraceBuilder* b) {
  const TensorContraction& t = plan.t;
  const std::string& name = plan.anatomy.name(t.stage);
  const int64_t bk = v.at("bk"), element = DTypeBytes(plan.row.operand);
  const bool pad = v.at("pad") != 0;
  for (const TensorOperand* operand : {&t.a, &t.b}) {
    for (const std::string& stage : operand->inlined) {
      if (!pad || operand != &t.a) b->Inline(stage);
    }
  }
  const std::string a_buffer = pad ? EmitPaddedImage(plan, b) : t.a.buffer,
                    b_buffer = pad ? EmitPaddedFilter(plan, b) : t.b.buffer;
  std::vector<std::string> grid, row_tiles, col_tiles, order, tile;
  for (int axis : t.batch) grid.push_back(plan.anatomy.Loop(t.stage, axis));
  const std::vector<std::string> rows = SplitAxes(plan, t.rows, BestAxisTile(plan.Rows(), v.at("bm")),
                                                  &row_tiles, b),
                                 cols = SplitAxes(plan, t.cols, BestAxisTile(plan.Cols(), v.at("bn")),
                                                  &col_tiles, b);
  Append(&grid, row_tiles);
  Append(&grid, col_tiles);

  order = grid;
  std::vector<std::string> depth;
  const AxisTile depth_tile = plan.DepthTile(bk);
  for (size_t r = 0; r < t.depth.size(); ++r) {
    const std::string loop = plan.anatomy.ReduceLoop(t.stage, t.depth[r]);
    const bool last = r + 1 == t.depth.size();
    if (depth_tile[r] > 1 || last) b->Split(loop, {depth_tile[r]});
    order.push_back(depth_tile[r] > 1 || last ? SubLoop(loop, 0) : loop);
    if (depth_tile[r] > 1 || last) depth.push_back(SubLoop(loop, 1));
  }
  const std::string ring = order.back();
  if (!t.a.depth_contiguous) Append(&tile, depth);
  Append(&tile, rows);
  if (t.a.depth_contiguous && !t.b.depth_contiguous) Append(&tile, depth);
  Append(&tile, cols);
  if (t.a.depth_contiguous && t.b.depth_contiguous) Append(&tile, depth);
  Append(&order, tile);
  b->Reorder(order);
  const std::string blocks = b->Fuse(grid);
  b->Bind(blocks, "block");
  b->CacheWrite(name, blocks);
  for (size_t i = 0; i + 1 < t.epilogue.size(); ++i) b->Inline(plan.anatomy.name(t.epilogue[i]));
  if (!t.epilogue.empty()) b->ReverseInline(plan.anatomy.name(t.epilogue.back()));
  const auto stage = [&](const TensorOperand& operand, const std::string& buffer,
                         const std::vector<int64_t>& extents, int64_t size) {
    const TileLayout layout =
        LayoutOf(InnerTile(operand, bk, extents, size), element, operand.depth_contiguous);
    b->Stage(name, buffer, ring, "shared");
    b->Layout(absl::StrCat(buffer, ".s"), layout.pad, layout.swizzle);
  };
  stage(t.a, a_buffer, plan.Rows(), v.at("bm"));
  stage(t.b, b_buffer, plan.Cols(), v.at("bn"));
  b->TensorizeTile(tile.front(), plan.row.name, v.at("row_warps"), v.at("column_warps"));
  b->Pipeline(ring, "threads", v.at("stages"));
}

struct TileDefault {
  int64_t bm = 32, bn = 32, row_warps = 1, column_warps = 1;
};

// The tile that finishes first: products at their rate, operands from L2, rounds of blocks.
TileDefault DefaultTile(const Plan& plan, const std::vector<int64_t>& bms, const std::vector<int64_t>& bns) {
  constexpr int64_t kGrids[][2] = {{2, 2}, {1, 4}, {4, 1}, {4, 2}, {2, 4}, {1, 2}, {2, 1}, {1, 1}};
  TileDefault best;
  double best_cost = 0;
  for (const int64_t bm : bms) {
    for (const int64_t bn : bns) {
      for (const auto& [wr, wc] : kGrids) {
        const Values v = {{"bm", bm},        {"bn", bn},           {"bk", plan.row.k}, {"stages", 2},
                          {"row_warps", wr}, {"column_warps", wc}, {"pad", 0}};
        const int64_t warp_rows = bm / wr, warp_columns = bn / wc;
        if (!Legal(plan, v) || warp_rows > 64 || warp_columns > 64) continue;
        const int64_t tiles = plan.Tiles(bm, bn);
        const int64_t turns = (tiles + plan.target.sms - 1) / plan.target.sms;
        const auto rounds = static_cast<double>(turns);
        const double multiply = static_cast<double>(bm * bn) / 4096, feed = static_cast<double>(bm + bn) / 96,
                     fragments =
                         static_cast<double>(bm * bn) / 4096 * 16 *
                         (1.0 / static_cast<double>(warp_rows) + 1.0 / static_cast<double>(warp_columns));
        const double idle = wr * wc < 4 ? 0.3 : 0;
        const double cost = rounds * (std::max({multiply, feed, fragments}) * (1 + idle) + 0.3);
        if (best_cost != 0 && cost >= best_cost) continue;
        best = {bm, bn, wr, wc};
        best_cost = cost;
      }
    }
  }
  return best;
}

}  // namespace

std::optional<Part> MultistagePart(const Anatomy& anatomy, const Group& group, const Target& target) {
  const std::optional<TensorContraction> t = FindTensorContraction(anatomy, group);
  if (!t) return std::nullopt;
  const auto row =
      TensorInstruction(*t, anatomy.stage(group.anchor).output->dtype, InstructionClass::kWarp, target);
  if (!row) return std::nullopt;
  // ldmatrix turns over elements of two bytes only.
  if (DTypeBytes(row->operand) == 1 && !(t->a.depth_contiguous && t->b.depth_contiguous)) return std::nullopt;
  const Plan plan{anatomy, *t, *row, target};
  Part part;
  part.prefix = absl::StrCat(anatomy.name(group.anchor), ".");
  part.rule = "multistage";
  const std::vector<int64_t> bms = {16, 32, 64, 128, 256}, bns = {16, 32, 64, 128, 256};
  const TileDefault tile = DefaultTile(plan, bms, bns);
  Values v = {{"bm", tile.bm},
              {"bn", tile.bn},
              {"bk", row->k},
              {"stages", 2},
              {"row_warps", tile.row_warps},
              {"column_warps", tile.column_warps},
              {"pad", 0}};
  if (!Legal(plan, v)) return std::nullopt;
  const int64_t depth = row->k;
  const std::vector<int64_t> bks = {depth, 2 * depth, 4 * depth};
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
  part.Decide("pad", CanPad(plan) ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0}, CanPad(plan),
              false);
  part.legal = [plan](const Values& values) { return Legal(plan, values); };
  part.emit = [plan](const Values& values, TraceBuilder* b) { Emit(plan, values, b); };
  return part;
}

}  // namespace mycc
