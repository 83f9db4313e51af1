// The CPU rule for contractions: GEMM, batched GEMM, and convolution as a batch-reduce of small GEMMs without
// an im2col buffer.
//
//   parallel outer axes, m.0, n.0:            (blocks; either order; or bands, each with a padded copy)
//     k.0:                                    (split k: partial sums in the output)
//       n.1, m.1:                             (register tiles; either order)
//         acc[mr, nr] = 0
//         r, s, k.1: acc += a[mr] * b[nr]     (one Mma statement; k.1 in groups where lanes add up several)
//         y = epilogue(acc)
//
// Vector lanes run along the output's last axis. In a crosswise schedule they run along the other operand's
// last axis, such as the channels of NCHW, and the output is transposed when it leaves the registers. A
// grouped convolution has its groups as outer loops. Const operands are packed into panels ahead of time,
// others into local panels where that pays. Where rows and columns are too few for the threads, the threads
// share the depth (contraction_depth.h). After BLIS (Van Zee and van de Geijn, 2015) and the batch-reduce
// GEMM of Georganas et al. (2020).
#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "codegen/target/instructions.h"
#include "tuner/space/part.h"
#include "tuner/space/rules/contraction_bands.h"
#include "tuner/space/rules/contraction_nest.h"
#include "tuner/space/rules/contraction_plan.h"
#include "tuner/space/rules/contraction_tiles.h"
#include "tuner/space/rules/tiles.h"
#include "tuner/space/stage_class.h"

namespace mycc {
namespace {

using Plan = ContractionPlan;

// With bands, they are what threads share, if anything.
bool BandsAreLegal(const Plan& plan, const Values& v) {
  const int64_t bands = v.at("bands");
  if (bands == 0) return true;
  if (v.at("fuse") || v.at("split") > 1 || v.at("pack_a") || v.at("pack_b")) return false;
  if (v.at("skip") != kSkipNone || v.at("pad") != kAtRoot || v.at("par") == kOuterBlock) return false;
  const int64_t tiles = BandTiles(plan, v);
  return bands <= tiles && BandsDiffer(plan, tiles, bands);
}

bool Legal(const Plan& plan, const Values& v) {
  const bool fused = v.at("fuse");
  const int64_t mr = v.at("mr"), nv = v.at("nv");
  const int64_t m = plan.M(fused), n = plan.N();
  const int64_t lines = v.at("lines");
  if (!plan.Fits(plan.RowsInTile(lines, mr), nv)) return false;
  if (lines > 1 && (fused || v.at("pack_a") || mr < m)) return false;
  // The last rows may leave less than one tile register empty.
  const int64_t most_rows = plan.InTiles() ? RoundUp(m, plan.product.instruction.m) : std::max<int64_t>(m, 1);
  if (mr > most_rows || (nv > 1 && (nv - 1) * plan.lanes >= n)) return false;
  if (v.at("mt") > 1 && v.at("mt") > CeilDiv(m, mr)) return false;
  if (v.at("nt") > 1 && v.at("nt") > CeilDiv(n, nv * plan.lanes)) return false;
  if (v.at("ku") > 1 && v.at("ku") * plan.KGroup() > v.at("kc")) return false;
  if (plan.InTiles() && v.at("kc") < plan.k_extent && v.at("kc") % (v.at("ku") * plan.KGroup()) != 0)
    return false;
  if (v.at("window") && (v.at("kc") < plan.k_extent || v.at("ku") > 1)) return false;
  if (v.at("split") > 1 && (v.at("par") == kNone || !FitsSplit(plan, v.at("split"), StepsOf(plan, v))))
    return false;
  if (fused && (v.at("pad") == kAtBlock || v.at("block_order") == kColumnsOutermost)) return false;
  // Panels copy whole boxes; a stage that is made for one box fills the part of it that exists.
  if (v.at("pad") == kAtBlock && (v.at("pack_a") != 0 || v.at("pack_b") != 0)) return false;
  if (!BandsAreLegal(plan, v)) return false;
  const int64_t skip = v.at("skip");
  if (skip != kSkipNone && (fused || lines > 1 || v.at("split") > 1 ||
                            !plan.padding.Fits(skip, CeilDiv(m, mr), n % (nv * plan.lanes) != 0)))
    return false;
  if (skip == kSkipAll && (v.at("pad") == kAtBlock || v.at("pack_a"))) return false;
  return !(fused && v.at("pack_a"));
}

// A fused row index costs divisions: worth it where there is no window, or a row of it is too short for a
// tile, unless that is where many zeros are.
bool FusesRows(const Plan& plan) {
  if (!plan.rows_fusable || plan.prologue.empty()) return plan.rows_fusable;
  return plan.M(false) < 12 && plan.padding.Preferred(/*tiles=*/1, /*has_tail=*/false) != kSkipAll;
}

// A loop of its own along fewer terms is mostly overhead.
constexpr int64_t kFewChannels = 16;

// Cycles of a step of the depth for all lines of an image and one column of tiles, where `lines` share tile
// registers of `nv` columns: of products, of waiting for a tile's own sums, or of loading tiles, from L1 and
// L2.
double WindowCycles(const Plan& plan, int64_t lines, int64_t nv) {
  constexpr double kProducts = 16, kLatency = 52, kLoadA = 8, kLoadB = 24;
  const int64_t all = plan.Extent(plan.way().rows.end()[-2]);
  const auto columns = static_cast<double>(nv);
  const auto block = [&](int64_t count) {
    const auto tiles = static_cast<double>(CeilDiv(plan.RowsInTile(count, plan.M(false)), 16));
    return std::max({kProducts * tiles * columns, kLatency, kLoadA * tiles + kLoadB * columns}) / columns;
  };
  return static_cast<double>(all / lines) * block(lines) + (all % lines > 0 ? block(all % lines) : 0);
}

// Rows of an image whose pixels share a tile: a short one leaves most of it empty, or passes all of b by for
// few products. Besides two and four, where lines can run on in the same tile registers, the number that
// takes the least time.
std::vector<int64_t> LinesInTile(const Plan& plan) {
  constexpr int64_t kMostLines = 8;
  std::vector<int64_t> lines = {1};
  if (plan.rows.size() < 2 || plan.IsCrosswise() || plan.MustPackA()) return lines;
  const int64_t pixels = plan.M(false);
  int64_t fastest = 1;
  for (int64_t more = 2; more <= std::min(kMostLines, plan.Extent(plan.way().rows.end()[-2])); ++more) {
    if (!plan.Fits(plan.RowsInTile(more, pixels), 1)) continue;
    if (more == 2 || more == 4) lines.push_back(more);
    const bool run_on = plan.InTiles() && plan.RowsInTile(more, pixels) < more * RoundUp(pixels, 16);
    if (run_on && WindowCycles(plan, more, 1) <= WindowCycles(plan, fastest, 1)) fastest = more;
  }
  if (std::ranges::find(lines, fastest) == lines.end()) lines.push_back(fastest);
  std::ranges::sort(lines);
  return lines;
}

// The tile of a window: lines beside each other, or such that run on in the same registers where that pays.
TileChoice BestWindowTile(const Plan& plan, const std::vector<int64_t>& lines) {
  constexpr double kFewestGained = 0.05;
  const int64_t m = plan.M(false);
  if (lines.size() == 1) return BestWindowRegisters(m, plan.N(), 1);
  const auto beside = std::find_if(lines.rbegin(), lines.rend(), [](int64_t l) { return l <= 4; });
  TileChoice best = BestWindowRegisters(m, plan.N(), *beside);
  double cycles = (1 - kFewestGained) * WindowCycles(plan, best.lines, best.nv);
  for (const int64_t more : lines) {
    if (more == 1 || WindowCycles(plan, more, 1) >= cycles) continue;
    best = {RoundUp(m, plan.product.instruction.m), 1, more};
    cycles = WindowCycles(plan, more, 1);
  }
  return best;
}

// A panel of weights then comes once for the whole image, which is read again for every panel.
bool PrefersColumnsOutermost(const Plan& plan) {
  return plan.InTiles() && plan.IsWindow() && plan.rows.size() > 1 &&
         plan.way().vector.buffer->bytes() > plan.way().scalar.buffer->bytes();
}

// A decision that there may be, and 0 where there is none.
std::vector<int64_t> MayBe(bool possible, std::vector<int64_t> choices = {0, 1}) {
  return possible ? std::move(choices) : std::vector<int64_t>{0};
}

// The default so far.
struct Preferred {
  bool fuse = false;
  TileChoice tile{1, 1};
  int64_t m_tiles = 1, n_tiles = 1;
  int64_t skip = kSkipNone;
  int64_t split = 1;
  DepthSteps steps{1, 1};
};

// Rows of a tile whose lines L1 can hold beside each other, in the scalar operand and in the output. Rows a
// power of two apart, in which channels come, fall into few of its sets: all into one where they are a
// multiple of a way apart. A quarter of the ways is for the other operand.
int64_t MostRows(const Plan& plan) {
  constexpr int64_t kWayBytes = 4096;
  if (plan.rows.empty() || plan.InTiles()) return kMostRowsInTile;
  const auto most = [&](const BufferNode& buffer, int dim) {
    if (dim < 0) return kMostRowsInTile;
    const int64_t apart = buffer.stride(dim) * DTypeBytes(buffer.dtype);
    const int64_t sets = kWayBytes / std::gcd(apart, kWayBytes);
    return std::max<int64_t>(sets * (plan.target.l1d_bytes / kWayBytes * 3 / 4), 1);
  };
  const int row = plan.way().rows.back();
  return std::min({kMostRowsInTile, most(*plan.stage().output, row),
                   most(*plan.way().scalar.buffer, plan.way().scalar.PlainDim(plan.stage().axes[row]))});
}

void DecideTile(const Plan& plan, Preferred* best, Part* part) {
  best->fuse = FusesRows(plan);
  part->Decide("fuse", MayBe(plan.rows_fusable), best->fuse, false);
  const int64_t m = plan.M(best->fuse), n = plan.N();
  const std::vector<int64_t> lines = LinesInTile(plan);
  best->tile = !plan.InTiles()                  ? BestTile(m, n, plan.lanes, MostRows(plan), plan.target)
               : plan.IsWindow() && !best->fuse ? BestWindowTile(plan, lines)
                                                : BestTileRegisters(m, n);
  best->m_tiles = CeilDiv(m, best->tile.mr);
  best->n_tiles = CeilDiv(n, best->tile.nv * plan.lanes);
  const int64_t step = plan.InTiles() ? plan.product.instruction.m : 1;
  std::vector<int64_t> mrs, nvs;
  for (int64_t mr = step; mr <= std::max(kMostRowsInTile, kMostTiles * step); mr += step) {
    if (plan.Fits(mr, 1) && mr < std::max(plan.M(true), plan.M(false)) + step) mrs.push_back(mr);
  }
  for (int64_t nv : kVectorsInTile) {
    if (plan.Fits(step, nv) && (nv == 1 || (nv - 1) * plan.lanes < n)) nvs.push_back(nv);
  }
  part->Decide("lines", lines, best->tile.lines);
  part->Decide("mr", mrs, best->tile.mr);
  part->Decide("nv", nvs, best->tile.nv);
}

// Groups of the depth that one step of tile registers multiplies: as many as a register holds, or, if that is
// half as many at least, the largest divisor of the depth.
std::vector<int64_t> TileGroups(const Plan& plan) {
  const int64_t groups = std::max<int64_t>(plan.k_extent / plan.KGroup(), 1),
                most = std::min(plan.product.instruction.k / plan.KGroup(), groups);
  int64_t even = most;
  while (groups % even != 0) --even;
  if (even == most || 2 * even < most) return {most};
  return {even, most};
}

// A step takes as long for any depth. The rest of the depth, for which copies fill tiles, takes as long as
// some more of them, but the steps before it load whole cache lines of a padded image.
int64_t BestTileGroups(const Plan& plan) {
  constexpr int64_t kStepsOfRest = 4;
  const std::vector<int64_t> choices = TileGroups(plan);
  const int64_t steps = plan.k_extent / (choices.front() * plan.KGroup()),
                steps_and_rest = plan.k_extent / (choices.back() * plan.KGroup()) + kStepsOfRest;
  return steps <= steps_and_rest ? choices.front() : choices.back();
}

void DecideDepth(const Plan& plan, Preferred* best, Part* part) {
  const int64_t k = plan.k_extent;
  // A long reduction is split so that a panel of b stays in L1; for the rows of one or two tiles b passes by
  // once whatever its order, and tile registers take longer to load and store their sums than that saves.
  const int64_t whole = 512 * plan.KGroup();
  const bool is_split =
      k > whole && !plan.IsWindow() && best->m_tiles > 2 && !plan.IsCrosswise() && !plan.InTiles();
  const int64_t kc = is_split ? whole / 2 : k;
  std::vector<int64_t> kcs = {k};
  for (int64_t c : {64, 128, 192, 256, 384, 512, 768, 1024}) {
    if (c < k && !plan.IsCrosswise()) kcs.push_back(c);
  }
  part->Decide("kc", kcs, kc);
  const bool has_tail = plan.N() % (best->tile.nv * plan.lanes) != 0;
  if (!best->fuse && best->tile.lines == 1) best->skip = plan.padding.Preferred(best->m_tiles, has_tail);
  part->Decide("skip", plan.padding.Choices(), best->skip, false);
  const bool has_window =
      plan.KGroup() == 1 && plan.IsWindow() && UnrolledOf(plan.window_order, plan.stage()) > 0;
  const bool is_window = has_window && k < kFewChannels;
  part->Decide("window", MayBe(has_window), is_window, false);
  // Several kernels of one tile's sums spill them where there is more in each.
  const bool unrolls = k % 2 == 0 && plan.KGroup() == 1 && !is_window && best->skip != kSkipAll;
  const int64_t ku = plan.InTiles() ? BestTileGroups(plan) : unrolls ? 2 : 1;
  part->Decide("ku", plan.InTiles() ? TileGroups(plan) : std::vector<int64_t>{1, 2, 4}, ku);
  best->steps = {kc, ku * plan.KGroup()};
}

// Products beside each other that blocks of rows and columns are of.
int64_t ProductsBeside(const Plan& plan, bool fused) {
  int64_t products = 1;
  for (int a : plan.way().batch) products *= plan.Extent(a);
  for (size_t i = 0; !fused && i + 1 < plan.way().rows.size(); ++i)
    products *= plan.Extent(plan.way().rows[i]);
  return products;
}

// Blocks: a's rows within half of L2, all of b's panels unless that leaves threads without work.
void DecideBlocks(const Plan& plan, Preferred* best, Part* part) {
  const TileChoice& tile = best->tile;
  const int64_t depth = PointsOf(plan.stage().reduce_axes);
  const int64_t bytes = DTypeBytes(plan.way().vector.buffer->dtype), other = ProductsBeside(plan, best->fuse);
  const auto block_of = [&](int64_t split) {
    const int64_t parts = std::max(CeilDiv(plan.k_extent, best->steps.kc), split),
                  slice = std::max<int64_t>(depth / parts, 1),
                  fit = std::max<int64_t>(plan.target.l2_bytes / 2 / (slice * tile.mr * bytes), 1);
    const BlockProblem problem{plan.M(best->fuse),   plan.N(), depth, other * split, tile.mr,
                               tile.nv * plan.lanes, bytes,    fit};
    return plan.InTiles() ? BestTileBlock(problem, plan.target) : BestBlock(problem, plan.target);
  };
  const std::vector<int64_t> splits = DepthSplits(plan, other * best->m_tiles * best->n_tiles);
  int64_t split = 1;
  if (best->skip == kSkipNone && PaysForThreads(plan.anatomy, plan.group, plan.target)) {
    split = BestSplit(plan, splits, best->steps,
                      [&](int64_t parts) { return block_of(parts).cycles / static_cast<double>(parts); });
  }
  const BlockChoice block = block_of(split);
  part->Decide("mt", TileCounts(best->m_tiles), block.mt);
  part->Decide("nt", TileCounts(best->n_tiles), PrefersColumnsOutermost(plan) ? 1 : block.nt);
  part->Decide("split", splits, split);
  best->split = split;
}

void DecideBands(const Plan& plan, const Preferred& best, Part* part) {
  const std::vector<int64_t> choices = BandChoices(plan);
  // Vectors multiply for so long that the copy does not matter.
  const bool may = choices.size() > 1 && plan.InTiles() && !best.fuse && best.split == 1 &&
                   best.skip == kSkipNone && PaysForThreads(plan.anatomy, plan.group, plan.target);
  int64_t bands = 0;
  if (may) {
    const bool of_columns = PrefersColumnsOutermost(plan);
    const int64_t lines = plan.Extent(plan.way().rows.end()[-2]);
    bands = BestBands(plan, of_columns, of_columns ? best.n_tiles : CeilDiv(lines, best.tile.lines));
  }
  part->Decide("bands", choices, bands);
}

// The cycles of the default tile for the whole product, and for writing it with a stride.
double CyclesOf(const Plan& plan) {
  constexpr double kCyclesAStridedElement = 1.25;
  double planes = 1;
  for (const Var& axis : plan.stage().axes) planes *= static_cast<double>(axis->extent);
  double depth = 1;
  for (const Var& axis : plan.stage().reduce_axes) depth *= static_cast<double>(axis->extent);
  const bool fused = FusesRows(plan);
  const int64_t m = plan.M(fused), n = plan.N();
  planes /= static_cast<double>(std::max<int64_t>(m, 1) * n);
  const double store = plan.IsCrosswise() ? kCyclesAStridedElement * static_cast<double>(m * n) : 0;
  const double step = StepCycles(BestTile(m, n, plan.lanes, MostRows(plan), plan.target), m, n, plan.lanes,
                                 plan.target);  // of single elements
  const Instruction& instruction = plan.product.instruction;
  return planes * (depth * step * 2 * instruction.cycles / (instruction.m * instruction.k) + store);
}

// Tile registers multiply so few steps for each sum that writing the sums takes longest.
bool MostlyWrites(const Plan& plan) {
  constexpr int64_t kFewSteps = 3;
  const int64_t depth = PointsOf(plan.stage().reduce_axes);
  return plan.InTiles() && depth <= kFewSteps * plan.product.instruction.k;
}

// The order of the nest, and who shares it.
void DecideOrder(const Plan& plan, Part* part) {
  const bool rows = !plan.rows.empty();
  std::vector<int64_t> block_orders = {kRowsOutside};
  if (rows) block_orders.push_back(kColumnsOutside);
  if (plan.rows.size() > 1) block_orders.push_back(kColumnsOutermost);
  part->Decide("block_order", block_orders, PrefersColumnsOutermost(plan) ? kColumnsOutermost : kRowsOutside,
               false);
  // Panels of b stay in L1 while the rows pass by; or sums are written in the order of their memory.
  part->Decide("tile_order", MayBe(rows), rows && !MostlyWrites(plan), false);
  part->Decide("par", MayBe(plan.target.threads > 1, {kNone, kOuterBlock, kBothBlocks}),
               PaysForThreads(plan.anatomy, plan.group, plan.target) ? kBothBlocks : kNone, false);
}

void DecideOperands(const Plan& plan, Part* part) {
  const Contraction& way = plan.way();
  part->Decide("pad", MayBe(!plan.prologue.empty(), {kAtRoot, kAtBlock}), kAtRoot, false);
  const int row_dim = plan.rows.empty() ? -1 : way.scalar.PlainDim(plan.stage().axes[way.rows.back()]);
  part->Decide("pack_a", plan.MustPackA() ? std::vector<int64_t>{1} : MayBe(row_dim >= 0),
               row_dim >= 0 && (way.scalar.is_const || plan.MustPackA()), false);
  const bool may_pack_b = !way.vector.is_const && plan.LaneDim() >= 0;
  part->Decide("pack_b", plan.MustPackB() ? std::vector<int64_t>{1} : MayBe(may_pack_b), plan.MustPackB(),
               false);
  // Tile registers wait for their operands; vectors are loaded far enough ahead by the core itself.
  part->Decide("ahead_a", MayBe(plan.InTiles(), {0, 1, 2, 4}), 0);
  part->Decide("ahead_b", MayBe(plan.InTiles(), {0, 2, 8}), plan.InTiles() && plan.IsWindow() ? 2 : 0);
  part->Decide("ahead_c", MayBe(plan.InTiles()), MostlyWrites(plan), false);
}

Part PartFor(const Plan& plan) {
  Part part;
  part.prefix = absl::StrCat(plan.t, ".");
  part.rule = absl::StrCat(plan.IsCrosswise() ? "crosswise" : "contraction", plan.InTiles() ? "_tiles" : "");
  Preferred best;
  DecideTile(plan, &best, &part);
  DecideDepth(plan, &best, &part);
  DecideBlocks(plan, &best, &part);
  DecideBands(plan, best, &part);
  DecideOrder(plan, &part);
  DecideOperands(plan, &part);
  part.legal = [plan](const Values& v) { return Legal(plan, v); };
  part.emit = [plan](const Values& v, TraceBuilder* b) { EmitContraction(plan, v, b); };
  return part;
}

}  // namespace

std::vector<Part> ContractionParts(const Anatomy& anatomy, const Group& group, const Target& target) {
  std::vector<std::pair<double, Part>> parts;
  for (const CpuProduct& product :
       CpuProductsOf(*anatomy.info(group.anchor).contraction, anatomy.product(group.anchor), target)) {
    const Plan plan = MakeContractionPlan(anatomy, group, target, product);
    parts.emplace_back(CyclesOf(plan), PartFor(plan));
  }
  std::ranges::stable_sort(parts, [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Part> result;
  result.reserve(parts.size());
  for (auto& [cycles, part] : parts) result.push_back(std::move(part));
  return result;
}

}  // namespace mycc
