// Contractions on the ordinary cores of a GPU: f32, f64, integers, and what tensor cores do not take.
//
//   block others, m.0, n.0, run:
//     alloc acc                                         in registers
//     for k outside, k.0:
//       a.r, b.r = tiles                                in shared memory, transposed where k is contiguous
//       thread m.1, n.2, m.2, n.3: unroll k.1: unroll m.3, n.1, n.4: acc += a.r[k, m] * b.r[k, n]
//     thread ..: unroll m.3, n.1: vector n.4: y = epilogue(acc)
//
// A warp is 4 x 8 threads, so that few words of shared memory serve all of it; a thread's columns are 16
// bytes in two halves of the tile. Where the tiles are too few for the GPU, the sum is cut into runs that a
// second launch adds up.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tuner/space/rules/cuda/gpu.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

constexpr int64_t kWarpRows = 4, kWarpColumns = 8;

struct SharedTile {
  std::string buffer;  // what the stage reads
  int rank;
  bool computed = false;    // by a stage that only feeds this one: padding
  bool transposed = false;  // k is its contiguous dimension
  int64_t lanes = 1;        // of global accesses along that
};

struct Plan {
  std::string t;
  std::string grouped;  // the axis to be split by `group`, where groups lie along one (anatomy.h)
  int64_t group = 1;
  std::vector<std::string> axes, others, outer_reduce;  // what follows "t." in the names of loops
  std::string m, n, k;                                  // m empty: there are no rows
  int64_t rows = 1, columns = 1, depth = 1, count = 1;  // extents; count: of the other axes together
  int64_t bytes = 4;                                    // of what is multiplied
  std::vector<SharedTile> tiles;
  std::vector<std::string> epilogue;
};

int64_t VectorColumns(const Plan& plan) { return std::max<int64_t>(kAccessBytes / plan.bytes, 1); }

// How the values of a point tile the problem.
struct Tiling {
  Tiling(const Plan& plan, const Values& v)
      : vector(std::min(VectorColumns(plan), v.at("thread_n"))),
        halves(v.at("thread_n") / vector),
        warps_m(v.at("tile_m") / (kWarpRows * v.at("thread_m"))),
        warps_n(v.at("tile_n") / (kWarpColumns * v.at("thread_n"))) {}

  int64_t threads() const { return warps_m * warps_n * kWarp; }

  int64_t vector, halves, warps_m, warps_n;
};

std::string Part(const std::string& loop, int i) { return SubLoop(loop, i); }

void EmitTile(const SharedTile& tile, const std::string& work, const std::string& at, int64_t threads,
              TraceBuilder* b) {
  std::string name = tile.buffer;
  if (tile.computed) {
    b->ComputeAt(name, at);
    b->SetScope(name, "shared");
  } else {
    b->CacheRead(name, work, at, "shared");
    absl::StrAppend(&name, ".r");
  }
  if (tile.transposed && tile.rank > 1) {
    std::vector<std::string> layout = {absl::StrCat(tile.rank - 1)};
    for (int d = 0; d + 1 < tile.rank; ++d) layout.push_back(absl::StrCat(d));
    b->Pack(name, layout);
    b->Layout(name, 4, 0);
  }
  std::vector<std::string> loops;
  loops.reserve(tile.rank);
  for (int d = 0; d < tile.rank; ++d) loops.push_back(absl::StrCat(name, ".a", d));
  b->Split(loops.back(), {tile.lanes});
  const std::string lane = Part(loops.back(), 1);
  loops.back() = Part(loops.back(), 0);
  const std::string flat = b->Fuse(loops);
  b->Split(flat, {threads});
  b->Reorder({Part(flat, 1), Part(flat, 0)});
  b->Bind(Part(flat, 1), "thread");
  b->Bind(Part(flat, 0), "unroll");
  b->Bind(lane, "vector");
}

// The loops of one tile; `work` is t, or its partial sums with the loop `.v` over runs.
void EmitWork(const Plan& plan, const Values& v, const std::string& work, bool has_runs, TraceBuilder* b) {
  const Tiling tiling(plan, v);
  const auto loop = [&](const std::string& axis) { return absl::StrCat(work, ".", axis); };
  const std::string m = loop(plan.m), n = loop(plan.n), k = loop(plan.k);
  if (!plan.grouped.empty()) b->SplitAxis(loop(plan.grouped), plan.group);
  b->Split(n, {tiling.halves, tiling.warps_n, kWarpColumns, tiling.vector});
  b->Split(k, {v.at("tile_k")});
  std::vector<std::string> blocks, threads = {Part(n, 2), Part(n, 3)}, inner = {Part(n, 1), Part(n, 4)};
  for (const std::string& axis : plan.others) blocks.push_back(loop(axis));
  b->Split(m, {tiling.warps_m, kWarpRows, v.at("thread_m")});
  blocks.push_back(Part(m, 0));
  threads = {Part(m, 1), Part(n, 2), Part(m, 2), Part(n, 3)};
  inner.insert(inner.begin(), Part(m, 3));
  blocks.push_back(Part(n, 0));
  if (has_runs) blocks.push_back(absl::StrCat(work, ".v"));
  std::vector<std::string> order = blocks;
  for (const std::string& axis : plan.outer_reduce) order.push_back(loop(axis));
  order.push_back(Part(k, 0));
  order.insert(order.end(), threads.begin(), threads.end());
  order.push_back(Part(k, 1));
  order.insert(order.end(), inner.begin(), inner.end());
  b->Reorder(order);
  b->BindAll(blocks, "block");
  for (const SharedTile& tile : plan.tiles) EmitTile(tile, work, Part(k, 0), tiling.threads(), b);
  b->CacheWrite(work, blocks.back());
  if (v.at("stages") > 1) b->Pipeline(Part(k, 0), "threads", v.at("stages"));
  if (v.at("resident") > 0) b->Reside(blocks.back(), v.at("resident"));
  b->Bind(Part(k, 1), "unroll");
  for (const char* suffix : {"", ".i", ".w"}) {
    const auto named = [&](const std::string& l) {
      return absl::StrCat(work, suffix, l.substr(work.size()));
    };
    for (const std::string& l : threads) b->Bind(named(l), "thread");
    for (const std::string& l : inner) b->Bind(named(l), l == inner.back() ? "vector" : "unroll");
  }
}

int64_t RunLength(const Plan& plan, const Values& v) {
  return RoundUp(CeilDiv(plan.depth, v.at("runs")), v.at("tile_k"));
}

void FuseEpilogue(const Plan& plan, TraceBuilder* b) {
  for (size_t i = 0; i + 1 < plan.epilogue.size(); ++i) b->Inline(plan.epilogue[i]);
  if (!plan.epilogue.empty()) b->ReverseInline(plan.epilogue.back());
}

void Emit(const Plan& plan, const Values& v, TraceBuilder* b) {
  if (v.at("runs") == 1) {
    EmitWork(plan, v, plan.t, false, b);
    return FuseEpilogue(plan, b);
  }
  b->RFactorRuns(absl::StrCat(plan.t, ".", plan.k), RunLength(plan, v));
  const std::string partial = absl::StrCat(plan.t, ".rf");
  EmitWork(plan, v, partial, true, b);
  std::vector<std::string> layout = {absl::StrCat(plan.axes.size())}, loops;
  for (size_t a = 0; a < plan.axes.size(); ++a) {
    layout.push_back(absl::StrCat(a));
    loops.push_back(absl::StrCat(plan.t, ".", plan.axes[a]));
  }
  b->Pack(partial, layout);
  const std::string flat = b->Fuse(loops);
  b->Split(flat, {256});
  b->CacheWrite(plan.t, Part(flat, 1));
  FuseEpilogue(plan, b);
  b->Bind(Part(flat, 0), "block");
  b->Bind(Part(flat, 1), "thread");
}

bool Legal(const Plan& plan, const Values& v) {
  const Tiling tiling(plan, v);
  if (tiling.warps_m < 1 || tiling.warps_n < 1 || tiling.threads() > 512 || tiling.threads() < kWarp)
    return false;
  // Half of the tile would be idle.
  if (v.at("tile_m") / 2 >= std::max<int64_t>(plan.rows, 16) ||
      v.at("tile_n") / 2 >= std::max<int64_t>(plan.columns, 32))
    return false;
  // A copy that runs ahead is whole vectors of all threads.
  for (size_t i = 0; v.at("stages") > 1 && i < plan.tiles.size(); ++i) {
    const int64_t vectors = v.at(i == 0 ? "tile_m" : "tile_n") * v.at("tile_k") / plan.tiles[i].lanes;
    if (vectors % tiling.threads() != 0 || v.at("runs") > 1) return false;
  }
  if (v.at("resident") > 0 && v.at("stages") == 1) return false;
  const int64_t accumulators = v.at("thread_m") * v.at("thread_n") * plan.bytes / 4;
  if (accumulators > 128 || accumulators * tiling.threads() > 32000) return false;
  return v.at("runs") == 1 || (RunLength(plan, v) >= 2 * v.at("tile_k") && RunLength(plan, v) < plan.depth);
}

// Turns of blocks on the SMs, each as long as its tile and what surrounds it.
double TileCost(const Plan& plan, int64_t tile_m, int64_t tile_n, const Target& target) {
  constexpr double kOverhead = 24;  // of loading, against multiplying, a row or column of the tile
  const double blocks =
      static_cast<double>(plan.count * CeilDiv(plan.rows, tile_m) * CeilDiv(plan.columns, tile_n));
  const double sms = std::max(target.sms, 1), turns = std::max(std::ceil(blocks / sms), blocks / sms);
  return turns * static_cast<double>(tile_m * tile_n) *
         (1 + kOverhead / static_cast<double>(tile_m) + kOverhead / static_cast<double>(tile_n));
}

SharedTile DescribeTile(const Anatomy& anatomy, const Group& group, const Operand& operand, const Var& k) {
  SharedTile tile{operand.buffer->name, operand.buffer->rank()};
  tile.computed = std::count(group.members.begin(), group.members.end(), operand.producer) > 0;
  tile.transposed = operand.PlainDim(k) == tile.rank - 1;
  if (tile.computed) {
    const Stage& stage = anatomy.stage(operand.producer);
    tile.lanes = LanesOf(stage, stage.axes.back());
  } else {
    // Tiles begin at multiples of their sizes along each axis; constant displacements are in the index.
    const Expr& last = operand.index.back();
    if (last->op == Op::kVar) tile.lanes = AlignedLanes(*operand.buffer, operand.index, last->var);
    tile.lanes = std::min(tile.lanes, kAccessBytes / std::max(DTypeBytes(operand.buffer->dtype), 1));
  }
  return tile;
}

Plan MakePlan(const Anatomy& anatomy, const Group& group) {
  const Stage& stage = anatomy.product(group.anchor);
  const Contraction& c = *anatomy.info(group.anchor).contraction;
  Plan plan;
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
  for (const Operand* operand : {&c.scalar, &c.vector})
    plan.tiles.push_back(DescribeTile(anatomy, group, *operand, stage.reduce_axes[k]));
  for (int s : group.members) {
    if (s > group.anchor) plan.epilogue.push_back(anatomy.name(s));
  }
  return plan;
}

// Copies that run ahead stand under no condition, and move at least 4 bytes at a time.
bool CanPipeline(const Plan& plan, int64_t most_m, int64_t most_n) {
  constexpr int64_t kMostK = 32;
  const bool whole = plan.rows % most_m == 0 && plan.columns % most_n == 0 && plan.depth % kMostK == 0;
  return whole && plan.bytes >= 4 && plan.outer_reduce.empty() &&
         std::none_of(plan.tiles.begin(), plan.tiles.end(),
                      [](const SharedTile& tile) { return tile.computed; });
}

}  // namespace

// REQUIRES: the anchor is a contraction with rows.
mycc::Part GpuSimtRule(const Anatomy& anatomy, const Group& group, const Target& target) {
  const Plan plan = MakePlan(anatomy, group);
  mycc::Part part;
  part.prefix = absl::StrCat(plan.t, ".");
  part.rule = "simt";
  int64_t tile_m = 32, tile_n = 64;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t m : {128, 64, 32}) {
    for (int64_t n : {128, 64}) {
      const double cost = TileCost(plan, m, n, target);
      if (cost < least) tile_m = m, tile_n = n, least = cost;
    }
  }
  const int64_t thread_m = tile_m >= 128 ? 8 : 4, thread_n = tile_n >= 128 ? 8 : 4;
  const int64_t tile_k = plan.depth >= 16 ? 16 : PowerAtLeast(plan.depth);
  const int64_t blocks = plan.count * CeilDiv(plan.rows, tile_m) * CeilDiv(plan.columns, tile_n);
  const int64_t runs = std::clamp<int64_t>(std::max(target.sms, 1) / std::max<int64_t>(blocks, 1), 1,
                                           std::max<int64_t>(plan.depth / (4 * tile_k), 1));
  const std::vector<int64_t> ms = PowersOfTwo(tile_m / 2, std::min<int64_t>(2 * tile_m, 128));
  const std::vector<int64_t> ns = PowersOfTwo(tile_n / 2, std::min<int64_t>(2 * tile_n, 256));
  part.Decide("tile_m", ms, tile_m);
  part.Decide("tile_n", ns, tile_n);
  part.Decide("thread_m", {4, 8}, thread_m);
  part.Decide("thread_n", {4, 8}, thread_n);
  const bool pipelined = CanPipeline(plan, ms.back(), ns.back());
  // What is copied ahead had better be short: it is kept in registers through a step.
  part.Decide("tile_k", plan.depth >= 16 ? std::vector<int64_t>{8, 16, 32} : std::vector<int64_t>{tile_k},
              pipelined ? 8 : tile_k);
  part.Decide("runs", runs == 1 ? std::vector<int64_t>{1} : std::vector<int64_t>{1, CeilDiv(runs, 2), runs},
              runs);
  part.Decide("stages", pipelined ? std::vector<int64_t>{1, 2, 3} : std::vector<int64_t>{1},
              pipelined ? 3 : 1);
  // What is copied ahead takes registers, and left alone the assembler takes many.
  part.Decide("resident", pipelined ? std::vector<int64_t>{0, 2} : std::vector<int64_t>{0}, 0);
  part.legal = [plan](const Values& v) { return Legal(plan, v); };
  MakeDefaultsLegal(&part);
  part.emit = [plan](const Values& v, TraceBuilder* b) { Emit(plan, v, b); };
  return part;
}

}  // namespace mycc
