// Contractions on a CPU: GEMM, batched GEMM, and convolution as a batch-reduce of small GEMMs without an
// im2col buffer.
//
//   parallel outer axes, m.0, n.0:            (blocks; either order)
//     k.0:                                    (split k: partial sums in the output)
//       n.1, m.1:                             (register tiles; either order)
//         acc[mr, nr] = 0
//         r, s, k.1: acc += a[mr] * b[nr]     (one Mma statement; k.1 in groups where lanes add up several)
//         y = epilogue(acc)
//
// The lane axis is the output's last; or, crosswise, the other operand's last, such as the channels of NCHW:
// the output is then transposed on its way out of the registers. Of a grouped convolution the groups are
// outer loops, and the product is each group's. Const operands are packed into panels ahead of time, others
// into local panels where that pays. After BLIS (Van Zee and van de Geijn, 2015) and the batch-reduce GEMM of
// Georganas et al. (2020). Where rows and columns are few, threads share the depth (contraction_depth.h).
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "codegen/schedule/instructions.h"
#include "tuner/space/part.h"
#include "tuner/space/rules/contraction_depth.h"
#include "tuner/space/rules/contraction_plan.h"
#include "tuner/space/rules/contraction_tiles.h"
#include "tuner/space/rules/panels.h"
#include "tuner/space/rules/tiles.h"
#include "tuner/space/stage_class.h"

namespace mycc {
namespace {

using Plan = ContractionPlan;

// How a padded (or otherwise computed) operand is provided.
enum PrologueAt : int64_t { kAtRoot = 0, kAtBlock = 1 };
// Of the loops over blocks; the columns' also around the image rows, whose products then share b's panel.
enum BlockOrder : int64_t { kRowsOutside = 0, kColumnsOutside = 1, kColumnsOutermost = 2 };
enum ParallelOver : int64_t { kNone = 0, kOuterBlock = 1, kBothBlocks = 2 };

// A nest over the tile: rows unrolled, columns in vectors.
void EmitTileCopy(const std::string& block, const std::vector<std::string>& row_suffixes,
                  const std::string& col_suffix, int64_t nr, int64_t lanes, TraceBuilder* b) {
  const std::string cols = block + col_suffix;
  std::string vector = cols;
  if (nr > lanes) {
    b->Split(cols, {lanes});
    b->Bind(absl::StrCat(cols, ".0"), "unroll");
    vector = absl::StrCat(cols, ".1");
  }
  b->Bind(vector, "vector");
  for (const std::string& suffix : row_suffixes) b->Bind(block + suffix, "unroll");
}

// Where all zeros are skipped, there is no padded image.
void EmitSkippedZeros(int64_t skip, Plan* plan, TraceBuilder* b) {
  if (skip == kSkipNone) return;
  const std::string image = plan->anatomy.name(plan->prologue.front());
  for (const int dim : plan->padding.outer) b->SkipZeros(plan->t, image, dim);
  if (skip != kSkipAll) return;
  for (const int dim : plan->padding.rows) b->SkipZeros(plan->t, image, dim);
  b->Inline(image);
  plan->prologue.clear();
}

DepthSteps StepsOf(const Plan& plan, const Values& v) { return {v.at("kc"), v.at("ku") * plan.KGroup()}; }

// The nest that multiplies, and its copies of operands.
void EmitNest(Plan plan, const Values& v, TraceBuilder* b) {
  const bool is_window = v.at("window") != 0;
  if (is_window) plan.k_order = plan.window_order;
  const std::string& t = plan.t;
  const int64_t mr = v.at("mr"), nr = v.at("nv") * plan.lanes;
  const bool has_rows = !plan.rows.empty();
  EmitSkippedZeros(v.at("skip"), &plan, b);
  if (plan.c.groups) b->SplitAxis(plan.Loop(plan.c.groups->axis), plan.c.groups->extent);
  for (const GroupedAxis& phased : plan.c.phases) b->SplitAxis(plan.Loop(phased.axis), phased.extent);
  // Loops and their tiles.
  std::vector<std::string> outer_rows;
  const auto part = [](const std::string& loop, int i) { return absl::StrCat(loop, ".", i); };
  std::string m, lines;
  if (has_rows) {
    m = v.at("fuse") ? b->Fuse(plan.rows) : plan.rows.back();
    if (!v.at("fuse")) outer_rows.assign(plan.rows.begin(), plan.rows.end() - 1);
    b->Split(m, {v.at("mt"), mr});
  }
  if (v.at("lines") > 1) {
    b->Split(outer_rows.back(), {v.at("lines")});
    lines = part(outer_rows.back(), 1);
    outer_rows.back() = part(outer_rows.back(), 0);
  }
  b->Split(plan.n, {v.at("nt"), nr});
  std::string k_inner = plan.ReduceLoop(plan.k_order.back()), k_outer, k_unrolled, k_group;
  if (!is_window && v.at("kc") < plan.k_extent) {
    b->Split(k_inner, {v.at("kc")});
    k_outer = part(k_inner, 0);
    k_inner = part(k_inner, 1);
  }
  std::vector<int64_t> steps;
  if (!is_window && v.at("ku") > 1) steps.push_back(v.at("ku"));
  if (plan.KGroup() > 1) steps.push_back(plan.KGroup());
  if (!steps.empty()) b->Split(k_inner, steps);
  if (!is_window && v.at("ku") > 1) k_unrolled = part(k_inner, 1);
  if (plan.KGroup() > 1) k_group = part(k_inner, static_cast<int>(steps.size()));
  if (!steps.empty()) k_inner = part(k_inner, 0);
  // Order: blocks, tiles, reduction, register tile.
  std::vector<std::string> blocks = {part(plan.n, 0)}, tiles = {part(plan.n, 1)};
  std::vector<std::string> outer = plan.outer;
  if (v.at("block_order") == kColumnsOutermost) {
    blocks.insert(blocks.end(), outer_rows.begin(), outer_rows.end());
  } else {
    outer.insert(outer.end(), outer_rows.begin(), outer_rows.end());
  }
  if (has_rows) {
    blocks.insert(v.at("block_order") == kRowsOutside ? blocks.begin() : blocks.end(), part(m, 0));
    tiles.insert(v.at("tile_order") ? tiles.end() : tiles.begin(), part(m, 1));
  }
  std::vector<std::string> order = outer;
  order.insert(order.end(), blocks.begin(), blocks.end());
  if (!k_outer.empty()) order.push_back(k_outer);
  order.insert(order.end(), tiles.begin(), tiles.end());
  for (size_t i = 0; i + 1 < plan.k_order.size(); ++i) {
    order.push_back(plan.ReduceLoop(plan.k_order[i]));
  }
  order.push_back(k_inner);
  if (!k_unrolled.empty()) order.push_back(k_unrolled);
  if (!lines.empty()) order.push_back(lines);
  if (has_rows) order.push_back(part(m, 2));
  order.push_back(part(plan.n, 2));
  if (!k_group.empty()) order.push_back(k_group);
  b->Reorder(order);
  // Parallel loops: a prefix of the nest.
  std::vector<std::string> parallel = outer;
  if (v.at("par") != kNone) parallel.push_back(blocks[0]);
  if (v.at("par") == kBothBlocks) parallel.insert(parallel.end(), blocks.begin() + 1, blocks.end());
  if (v.at("par") == kNone) parallel.clear();
  b->BindAll(parallel, "parallel");
  // Where local copies are made: inside all parallel loops and all blocks.
  const std::string block_loop = k_outer.empty() ? blocks.back() : k_outer;

  for (int p : plan.prologue) {
    const std::string name = plan.anatomy.name(p);
    if (v.at("pad") == kAtBlock)
      b->ComputeAt(name, v.at("par") == kBothBlocks ? blocks.back() : blocks.front());
    EmitPlainStage(plan.anatomy, p, plan.target, v.at("pad") == kAtRoot && v.at("par") != kNone, b);
  }
  const int lane_dim = plan.LaneDim();
  if (plan.c.vector.is_const ? lane_dim >= 0 : v.at("pack_b") != 0) {
    // No panel holds the end of one group and the start of the next.
    const bool fits = !plan.c.groups || plan.N() % nr == 0;
    EmitPanels(plan, {plan.c.vector, lane_dim, fits ? nr : kWholePanel, plan.KGroup()}, block_loop, b);
  }
  if (has_rows && v.at("pack_a")) {
    const int row_dim = plan.c.scalar.PlainDim(plan.stage().axes[plan.c.rows.back()]);
    EmitPanels(plan, {plan.c.scalar, row_dim, mr, plan.PanelDepth()}, block_loop, b);
  }

  const std::string n_tile = part(plan.n, 2), m_tile = has_rows ? part(m, 2) : "";
  b->CacheWrite(t, tiles.back());
  if (!k_unrolled.empty()) b->Bind(k_unrolled, "unroll");
  const size_t unrolled = is_window ? UnrolledOf(plan.k_order, plan.stage()) : 0;
  for (size_t i = 1; i <= unrolled; ++i)
    b->Bind(plan.ReduceLoop(plan.k_order[plan.k_order.size() - 1 - i]), "unroll");
  const auto suffix = [&](const std::string& loop) { return loop.substr(t.size()); };
  b->Tensorize(k_inner, plan.product.instruction.name);
  if (v.at("ahead_a") != 0 || v.at("ahead_b") != 0 || v.at("ahead_c") != 0)
    b->Prefetch(k_inner, v.at("ahead_a"), v.at("ahead_b"), v.at("ahead_c") != 0);
  std::vector<std::string> row_suffixes;
  if (!lines.empty()) row_suffixes.push_back(suffix(lines));
  if (has_rows) row_suffixes.push_back(suffix(m_tile));
  const auto tile_copy = [&](const std::string& block) {
    EmitTileCopy(block, row_suffixes, suffix(n_tile), nr, plan.lanes, b);
  };
  EmitEpilogue(plan.anatomy, plan.epilogue, b);
  tile_copy(absl::StrCat(t, ".i"));
  tile_copy(absl::StrCat(t, ".w"));
  if (!plan.epilogue.empty() && !k_outer.empty()) tile_copy(plan.anatomy.name(plan.epilogue.back()));
}

void Emit(const Plan& plan, const Values& v, TraceBuilder* b) {
  const int64_t split = v.at("split");
  if (split == 1) return EmitNest(plan, v, b);
  EmitNest(EmitSplit(plan, split, StepsOf(plan, v), b), v, b);
  EmitSumOfParts(plan, split, b);
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
  if (v.at("window") && (v.at("kc") < plan.k_extent || v.at("ku") > 1)) return false;
  if (v.at("split") > 1 && (v.at("par") == kNone || !FitsSplit(plan, v.at("split"), StepsOf(plan, v))))
    return false;
  if (fused && (v.at("pad") == kAtBlock || v.at("block_order") == kColumnsOutermost)) return false;
  // Panels copy whole boxes, of which a stage that is made for one fills what exists.
  if (v.at("pad") == kAtBlock && v.at("pack_a") != 0) return false;
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

// Along fewer terms than so many a loop of its own is mostly overhead.
constexpr int64_t kFewChannels = 16;

// Rows of an image whose pixels share a tile: a short one leaves most of it empty, or passes all of b by for
// few products.
std::vector<int64_t> LinesInTile(const Plan& plan) {
  std::vector<int64_t> lines = {1};
  if (plan.rows.size() < 2 || plan.IsCrosswise() || plan.MustPackA()) return lines;
  for (const int64_t more : {2, 4}) {
    if (more <= plan.Extent(plan.c.rows.end()[-2]) && plan.Fits(plan.RowsInTile(more, plan.M(false)), 1))
      lines.push_back(more);
  }
  return lines;
}

// A panel of weights then comes once for the whole image, which is read again for every panel.
bool PrefersColumnsOutermost(const Plan& plan) {
  return plan.InTiles() && plan.IsWindow() && plan.rows.size() > 1 &&
         plan.c.vector.buffer->bytes() > plan.c.scalar.buffer->bytes();
}

void DecideTiles(const Plan& plan, Part* part) {
  const bool fuse_default = FusesRows(plan);
  part->Decide("fuse", plan.rows_fusable ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0}, fuse_default,
               false);
  const int64_t m = plan.M(fuse_default), n = plan.N();
  const std::vector<int64_t> lines = LinesInTile(plan);
  const TileChoice tile = !plan.InTiles()   ? BestTile(m, n, plan.lanes, plan.target)
                          : plan.IsWindow() ? BestWindowRegisters(m, n, lines.back())
                                            : BestTileRegisters(m, n);
  const int64_t step = plan.InTiles() ? plan.product.instruction.m : 1;
  std::vector<int64_t> mrs, nvs;
  for (int64_t mr = step; mr <= std::max(kMostRowsInTile, kMostTiles * step); mr += step) {
    if (plan.Fits(mr, 1) && mr < std::max(plan.M(true), plan.M(false)) + step) mrs.push_back(mr);
  }
  for (int64_t nv : kVectorsInTile) {
    if (plan.Fits(step, nv) && (nv == 1 || (nv - 1) * plan.lanes < n)) nvs.push_back(nv);
  }
  part->Decide("lines", lines, tile.lines);
  part->Decide("mr", mrs, tile.mr);
  part->Decide("nv", nvs, tile.nv);
  const int64_t nr = tile.nv * plan.lanes, k = plan.k_extent;
  int64_t depth = k;
  for (int r : plan.k_order) depth *= r == plan.k_order.back() ? 1 : plan.stage().reduce_axes[r]->extent;
  const int64_t n_tiles = CeilDiv(n, nr), m_tiles = CeilDiv(m, tile.mr);
  // A long reduction is split so that a panel of b stays in L1; for the rows of one or two tiles b passes by
  // once whatever its order, and tile registers take longer to load and store their sums than that saves.
  const int64_t whole = 512 * plan.KGroup();
  const bool is_split =
      k > whole && plan.k_order.size() == 1 && m_tiles > 2 && !plan.IsCrosswise() && !plan.InTiles();
  const int64_t kc = is_split ? whole / 2 : k;
  std::vector<int64_t> kcs = {k};
  for (int64_t c : {64, 128, 192, 256, 384, 512, 768, 1024}) {
    if (c < k && !plan.IsCrosswise()) kcs.push_back(c);
  }
  part->Decide("kc", kcs, kc);
  const bool has_window =
      plan.KGroup() == 1 && plan.k_order.size() > 1 && UnrolledOf(plan.window_order, plan.stage()) > 0;
  const bool is_window = has_window && k < kFewChannels;
  const int64_t skip =
      fuse_default || tile.lines > 1 ? int64_t{kSkipNone} : plan.padding.Preferred(m_tiles, n % nr != 0);
  part->Decide("skip", plan.padding.Choices(), skip, false);
  part->Decide("window", has_window ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0}, is_window, false);
  if (plan.InTiles()) {
    const int64_t groups = plan.product.instruction.k / plan.KGroup();  // of one instruction
    part->Decide("ku", {groups}, groups);
  } else {
    // Several kernels of one tile's sums spill them where there is more in each.
    part->Decide("ku", {1, 2, 4}, k % 2 == 0 && plan.KGroup() == 1 && !is_window && skip != kSkipAll ? 2 : 1);
  }
  const DepthSteps steps{kc, part->defaults.back() * plan.KGroup()};
  // Blocks: a's rows within half of L2, all of b's panels unless that leaves threads without work.
  const int64_t bytes = DTypeBytes(plan.c.vector.buffer->dtype);
  int64_t other = 1;
  for (int a : plan.c.batch) other *= plan.Extent(a);
  for (size_t i = 0; !fuse_default && i + 1 < plan.c.rows.size(); ++i) other *= plan.Extent(plan.c.rows[i]);
  const auto block_of = [&](int64_t split) {
    const int64_t slice = std::max<int64_t>(depth / std::max(CeilDiv(k, kc), split), 1),
                  fit = std::max<int64_t>(plan.target.l2_bytes / 2 / (slice * tile.mr * bytes), 1);
    const BlockProblem problem{m, n, depth, other * split, tile.mr, nr, bytes, fit};
    return plan.InTiles() ? BestTileBlock(problem, plan.target) : BestBlock(problem, plan.target);
  };
  const std::vector<int64_t> splits = DepthSplits(plan, other * m_tiles * n_tiles);
  const bool pays = PaysForThreads(plan.anatomy, plan.group, plan.target);
  const int64_t split =
      pays && skip == kSkipNone
          ? BestSplit(plan, splits, steps,
                      [&](int64_t parts) { return block_of(parts).cycles / static_cast<double>(parts); })
          : 1;
  const BlockChoice block = block_of(split);
  part->Decide("mt", TileCounts(m_tiles), block.mt);
  part->Decide("nt", TileCounts(n_tiles), PrefersColumnsOutermost(plan) ? 1 : block.nt);
  part->Decide("split", splits, split);
}

// Const panels are free. Others pay where the rows of a tile would fall into one set of L1, a power of two
// apart, and are read often enough.
bool PanelsOfAPay(const Plan& plan, int row_dim) {
  if (plan.c.scalar.is_const || plan.MustPackA()) return true;
  if (plan.InTiles()) return false;  // a line of each row is one of a tile's, and wanted once
  const int64_t row_bytes = plan.c.scalar.buffer->stride(row_dim) * DTypeBytes(plan.c.scalar.buffer->dtype);
  return row_bytes % 2048 == 0 && plan.N() >= 128 && plan.M(false) > 1;
}

// What the default tile takes for the whole product, and for writing it with a stride.
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
  const double step = StepCycles(BestTile(m, n, plan.lanes, plan.target), m, n, plan.lanes,
                                 plan.target);  // of single elements
  const Instruction& instruction = plan.product.instruction;
  return planes * (depth * step * 2 * instruction.cycles / (instruction.m * instruction.k) + store);
}

Part PartFor(const Plan& plan) {
  const Anatomy& anatomy = plan.anatomy;
  const Target& target = plan.target;
  Part part;
  part.prefix = absl::StrCat(plan.t, ".");
  part.rule = absl::StrCat(plan.IsCrosswise() ? "crosswise" : "contraction", plan.InTiles() ? "_tiles" : "");
  DecideTiles(plan, &part);
  const bool rows = !plan.rows.empty();
  std::vector<int64_t> block_orders = {kRowsOutside};
  if (rows) block_orders.push_back(kColumnsOutside);
  if (plan.rows.size() > 1) block_orders.push_back(kColumnsOutermost);
  part.Decide("block_order", block_orders, PrefersColumnsOutermost(plan) ? kColumnsOutermost : kRowsOutside,
              false);
  // Panels of b stay in L1 while the rows pass by.
  part.Decide("tile_order", rows ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0}, rows, false);
  const bool one_thread = target.threads == 1;
  part.Decide(
      "par", one_thread ? std::vector<int64_t>{kNone} : std::vector<int64_t>{kNone, kOuterBlock, kBothBlocks},
      PaysForThreads(anatomy, plan.group, target) ? kBothBlocks : kNone, false);
  part.Decide("pad",
              plan.prologue.empty() ? std::vector<int64_t>{kAtRoot} : std::vector<int64_t>{kAtRoot, kAtBlock},
              kAtRoot, false);
  const int row_dim = rows ? plan.c.scalar.PlainDim(plan.stage().axes[plan.c.rows.back()]) : -1;
  part.Decide("pack_a",
              plan.MustPackA() ? std::vector<int64_t>{1}
              : row_dim >= 0   ? std::vector<int64_t>{0, 1}
                               : std::vector<int64_t>{0},
              row_dim >= 0 && PanelsOfAPay(plan, row_dim), false);
  const bool may_pack_b = !plan.c.vector.is_const && plan.LaneDim() >= 0;
  const bool must_pack_b = may_pack_b && (plan.KGroup() > 1 || !plan.LaneContiguous());
  part.Decide("pack_b",
              must_pack_b  ? std::vector<int64_t>{1}
              : may_pack_b ? std::vector<int64_t>{0, 1}
                           : std::vector<int64_t>{0},
              must_pack_b, false);
  // Tile registers wait for their operands; vectors are loaded far enough ahead by the core itself.
  part.Decide("ahead_a", plan.InTiles() ? std::vector<int64_t>{0, 1, 2, 4} : std::vector<int64_t>{0}, 0);
  part.Decide("ahead_b", plan.InTiles() ? std::vector<int64_t>{0, 2, 8} : std::vector<int64_t>{0},
              plan.InTiles() && plan.IsWindow() ? 2 : 0);
  part.Decide("ahead_c", plan.InTiles() ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0}, 0, false);
  part.legal = [plan](const Values& v) { return Legal(plan, v); };
  part.emit = [plan](const Values& v, TraceBuilder* b) { Emit(plan, v, b); };
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
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Part> result;
  result.reserve(parts.size());
  for (auto& [cycles, part] : parts) result.push_back(std::move(part));
  return result;
}

}  // namespace mycc
