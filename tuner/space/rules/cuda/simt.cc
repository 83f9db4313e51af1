// The GPU rule for contractions on ordinary cores: f32, f64, integers, and everything that tensor cores do
// not multiply.
//
//   block others, m.0, n.0, run:
//     alloc acc                                         in registers
//     for k outside, k.0:
//       a.s, b.s = tiles                                in shared memory, the depth first; zero beyond edges
//       thread m.1, n.2, m.2, n.3: unroll k.1: unroll m.3, n.1, n.4: acc += a.s[k, m] * b.s[k, n]
//     thread ..: unroll m.3, n.1: vector n.4: y = epilogue(acc)
//
// Sums run over whole tiles, also beyond the edges of odd sizes: only copies and the last store have
// conditions. A warp is 4 x 8 threads, so that all of them need few words of shared memory. A thread's
// columns are vectors of 16 bytes at equal distances. Where the result's rows are no multiple of such
// vectors, a tile's columns are distributed singly instead, and neighbouring threads store neighbouring
// elements. With too few tiles for the GPU, the sum is cut into runs that a second launch adds up.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tuner/space/rules/cuda/simt_plan.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

constexpr int64_t kPad = 4;  // elements added to rows against bank conflicts, when a tile is transposed

// A stage that pads, computed tile by tile.
void ComputeTile(const SharedTile& tile, const std::string& at, TraceBuilder* b) {
  b->ComputeAt(tile.buffer, at);
  b->SetScope(tile.buffer, "shared");
  if (!tile.along_depth || tile.rank == 1) return;
  std::vector<std::string> layout = {absl::StrCat(tile.rank - 1)};
  for (int d = 0; d + 1 < tile.rank; ++d) layout.push_back(absl::StrCat(d));
  b->Pack(tile.buffer, layout);
  b->Layout(tile.buffer, kPad, 0);
}

// The loops of a tile's copy in the order in which the threads share them out: the loop over elements that
// are contiguous in the tensor comes last.
std::vector<std::string> CopyLoops(const SharedTile& tile, const std::string& name, const std::string& side,
                                   const std::string& depth, TraceBuilder* b) {
  std::vector<std::string> loops;
  if (tile.computed) {
    for (int d = 0; d < tile.rank; ++d) loops.push_back(absl::StrCat(name, ".a", d));
    return loops;
  }
  if (!tile.has_depth) return {side};
  if (!tile.has_side) return {depth};
  b->Pack(name, {"1", "0"});
  if (tile.along_depth) {
    b->Layout(name, kPad, 0);
    return {side, depth};
  }
  b->Reorder({depth, side});
  return {depth, side};
}

void ShareCopy(std::vector<std::string> loops, int64_t lanes, int64_t threads, TraceBuilder* b) {
  b->Split(loops.back(), {lanes});
  const std::string lane = SubLoop(loops.back(), 1);
  loops.back() = SubLoop(loops.back(), 0);
  const std::string flat = b->Fuse(loops);
  b->Split(flat, {threads});
  b->Reorder({SubLoop(flat, 1), SubLoop(flat, 0)});
  b->Bind(SubLoop(flat, 1), "thread");
  b->Bind(SubLoop(flat, 0), "unroll");
  b->Bind(lane, "vector");
}

struct WorkLoops {
  std::string rows, columns, terms;  // of one step
};
// The tiles of a step, each filled by all threads together.
void EmitTiles(const SimtPlan& plan, const Values& v, const std::string& work, const std::string& step,
               const WorkLoops& loops, TraceBuilder* b) {
  const auto name_of = [&](const SharedTile& tile) {
    return tile.computed ? tile.buffer : b->NextTile(tile.buffer, tile.second ? 1 : 0);
  };
  struct NamedTile {
    const SharedTile* tile;
    std::string name, side;
  };
  std::vector<NamedTile> tiles = {{&plan.a, name_of(plan.a), loops.rows},
                                  {&plan.b, name_of(plan.b), loops.columns}};
  if (plan.a.second) std::swap(tiles[0], tiles[1]);
  for (const auto& [tile, name, side] : tiles) {
    const auto own = [&work, &tile_name = name](const std::string& loop) {
      return absl::StrCat(tile_name, loop.substr(work.size()));
    };
    if (tile->computed) {
      ComputeTile(*tile, step, b);
    } else {
      b->StageShared(work, tile->buffer, step, "shared");
    }
    ShareCopy(CopyLoops(*tile, name, own(side), own(loops.terms), b), plan.CopyLanes(*tile, v),
              SimtTiling(plan, v).threads(), b);
  }
}

// The loops of one tile, among threads and in each of them.
struct TileLoops {
  std::vector<std::string> threads, inner;  // those of a vector last
};
// A warp's 4 x 8 threads are 2 x 4 quads of 2 x 2: shared memory serves a vector for each of them in half the
// time where neighbours, or neighbours' neighbours, read the same one.
TileLoops SplitTile(const SimtTiling& tiling, const Values& v, const std::string& rows,
                    const std::string& columns, TraceBuilder* b) {
  b->Split(rows, {2, 2, v.at("thread_m")});
  b->Split(columns, {tiling.warps_n, 4, 2, tiling.vector});
  return {{SubLoop(rows, 0), SubLoop(columns, 1), SubLoop(rows, 1), SubLoop(columns, 2), SubLoop(rows, 2),
           SubLoop(columns, 3)},
          {SubLoop(rows, 3), SubLoop(columns, 0), SubLoop(columns, 4)}};
}

void BindTile(const std::string& work, const TileLoops& loops, bool stores_vectors, TraceBuilder* b) {
  for (const std::string suffix : {"", ".i", ".w"}) {
    const auto named = [&](const std::string& l) {
      return absl::StrCat(work, suffix, l.substr(work.size()));
    };
    for (const std::string& l : loops.threads) b->Bind(named(l), "thread");
    for (const std::string& l : loops.inner) {
      const bool vector = l == loops.inner.back() && (suffix != ".w" || stores_vectors);
      b->Bind(named(l), vector ? "vector" : "unroll");
    }
  }
}

// The loops of one tile; `work` is t, or its partial sums with the loop `.v` over runs.
void EmitWork(const SimtPlan& plan, const Values& v, const std::string& work, bool has_runs,
              TraceBuilder* b) {
  const SimtTiling tiling(plan, v);
  const auto loop = [&](const std::string& axis) { return absl::StrCat(work, ".", axis); };
  const std::string m = loop(plan.m), n = loop(plan.n), k = loop(plan.k);
  if (!plan.grouped.empty()) b->SplitAxis(loop(plan.grouped), plan.group);
  b->Split(m, {v.at("tile_m")});
  b->Split(k, {v.at("tile_k")});
  const std::string step = SubLoop(k, 0), rows = SubLoop(m, 1), terms = SubLoop(k, 1);
  std::vector<std::string> columns = {SubLoop(n, 1)};
  if (plan.columns_apart) {
    b->Split(n, {v.at("tile_n") / (SimtTiling::kWarpColumns * tiling.vector), tiling.vector,
                 SimtTiling::kWarpColumns});
    columns = {SubLoop(n, 1), SubLoop(n, 3), SubLoop(n, 2)};
  } else {
    b->Split(n, {v.at("tile_n")});
  }
  std::vector<std::string> blocks;
  for (const std::string& axis : plan.others) blocks.push_back(loop(axis));
  blocks.push_back(SubLoop(m, 0));
  blocks.push_back(SubLoop(n, 0));
  if (has_runs) blocks.push_back(loop("v"));
  std::vector<std::string> order = blocks;
  for (const std::string& axis : plan.outer_reduce) order.push_back(loop(axis));
  order.insert(order.end(), {step, rows});
  order.insert(order.end(), columns.begin(), columns.end());
  order.push_back(terms);
  b->Reorder(order);
  b->BindAll(blocks, "block");
  const std::string places = b->Fuse(columns);
  EmitTiles(plan, v, work, step, {rows, places, terms}, b);
  const TileLoops loops = SplitTile(tiling, v, rows, places, b);
  order = loops.threads;
  order.push_back(terms);
  order.insert(order.end(), loops.inner.begin(), loops.inner.end());
  b->Reorder(order);
  b->CacheWrite(work, blocks.back());
  if (plan.HasWholeTiles()) b->PadDomain(work);
  if (v.at("stages") > 1) b->Pipeline(step, "threads", v.at("stages"));
  if (v.at("resident") > 0) b->MinBlocksPerSm(blocks.back(), v.at("resident"));
  b->Bind(terms, "unroll");
  BindTile(work, loops, !plan.columns_apart, b);
}

void FuseEpilogue(const SimtPlan& plan, TraceBuilder* b) {
  for (size_t i = 0; i + 1 < plan.epilogue.size(); ++i) b->Inline(plan.epilogue[i]);
  if (!plan.epilogue.empty()) b->ReverseInline(plan.epilogue.back());
}

void Emit(const SimtPlan& plan, const Values& v, TraceBuilder* b) {
  if (v.at("runs") == 1) {
    EmitWork(plan, v, plan.t, false, b);
    return FuseEpilogue(plan, b);
  }
  b->RFactorRuns(absl::StrCat(plan.t, ".", plan.k), plan.RunLength(v.at("runs"), v.at("tile_k")));
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
  b->CacheWrite(plan.t, SubLoop(flat, 1));
  FuseEpilogue(plan, b);
  b->Bind(SubLoop(flat, 0), "block");
  b->Bind(SubLoop(flat, 1), "thread");
  b->Bind(absl::StrCat(plan.t, ".v"), "unroll");
}

// Turns of blocks on the SMs, each as long as its tile and what surrounds it.
double TileCost(const SimtPlan& plan, int64_t tile_m, int64_t tile_n, const Target& target) {
  constexpr double kOverhead = 24;  // of loading, against multiplying, a row or column of the tile
  const double blocks =
      static_cast<double>(plan.count * CeilDiv(plan.rows, tile_m) * CeilDiv(plan.columns, tile_n));
  const double sms = std::max(target.sms, 1), turns = std::max(std::ceil(blocks / sms), blocks / sms);
  return turns * static_cast<double>(tile_m * tile_n) *
         (1 + kOverhead / static_cast<double>(tile_m) + kOverhead / static_cast<double>(tile_n));
}

// The sizes that leave no half of a tile idle.
std::vector<int64_t> TilesFor(int64_t extent, int64_t least, std::vector<int64_t> sizes) {
  while (sizes.back() / 2 >= std::max(extent, least)) sizes.pop_back();
  return sizes;
}

// Into how many runs the depth may be cut: while each is long, and a coarse grid's tiles are few turns of the
// SMs, where the last turn leaves many of them idle.
std::vector<int64_t> RunCounts(const SimtPlan& plan, const Target& target) {
  constexpr int64_t kShortest = 64, kTile = 128;
  const int64_t tiles = plan.count * CeilDiv(plan.rows, kTile) * CeilDiv(plan.columns, kTile);
  std::vector<int64_t> counts = {1};
  for (const int64_t runs : {2, 3, 4, 6, 8, 12, 16, 24, 32}) {
    if (plan.depth >= runs * kShortest && tiles * (runs - 1) < int64_t{4} * std::max(target.sms, 1))
      counts.push_back(runs);
  }
  return counts;
}

// The number of runs with which the SMs finish first. More runs leave fewer SMs idle in the last turn of
// tiles. But each run's sums are written, and read once more.
int64_t RunsFor(const SimtPlan& plan, int64_t tile_m, int64_t tile_n, int64_t tile_k, const Target& target) {
  // The products that an SM computes while it moves a byte, and while a launch begins (H200).
  constexpr double kProductsOfByte = 8, kProductsOfLaunch = 4e5;
  const auto sms = static_cast<double>(std::max(target.sms, 1));
  const auto tiles =
      static_cast<double>(plan.count * CeilDiv(plan.rows, tile_m) * CeilDiv(plan.columns, tile_n));
  const auto sums = static_cast<double>(plan.count * plan.rows * plan.columns);
  const auto cost = [&](int64_t runs) {
    if (!plan.HasRuns(runs, tile_k)) return std::numeric_limits<double>::infinity();
    const auto number = static_cast<double>(runs);
    const double products =
        std::ceil(tiles * number / sms) * static_cast<double>(tile_m * tile_n * plan.RunLength(runs, tile_k));
    if (runs == 1) return products;
    return products + kProductsOfLaunch +
           2 * number * sums * static_cast<double>(plan.bytes) / sms * kProductsOfByte;
  };
  return std::ranges::min(RunCounts(plan, target), {}, cost);
}

// Points that are often the fastest where there are blocks enough. The first two have 128 sums for each
// thread, whose operands are loaded a term ahead. The others have 64 sums, in blocks of four warps and as
// many runs as fill the last turn of the SMs.
void AddStarts(const SimtPlan& plan, const Target& target, mycc::Part* part) {
  for (const int64_t rows : {16, 8}) {
    part->Start({{"tile_m", 128},
                 {"tile_n", 128},
                 {"thread_m", rows},
                 {"thread_n", 128 / rows},
                 {"tile_k", 8},
                 {"stages", 2},
                 {"resident", 0}});
  }
  constexpr int64_t kTermsOfStep = 16;
  for (const int64_t tile_m : {64, 128}) {
    const int64_t tile_n = 64 * 128 / tile_m;
    part->Start({{"tile_m", tile_m},
                 {"tile_n", tile_n},
                 {"thread_m", 8},
                 {"thread_n", 8},
                 {"tile_k", kTermsOfStep},
                 {"runs", RunsFor(plan, tile_m, tile_n, kTermsOfStep, target)},
                 {"stages", 2},
                 {"resident", 2},
                 // So few threads have no registers for vectors that are transposed.
                 {"lanes_k", plan.TurnsVectors() ? 1 : kTurnedLanes}});
  }
}

}  // namespace

// REQUIRES: the anchor is a contraction with rows.
mycc::Part GpuSimtRule(const Anatomy& anatomy, const Group& group, const Target& target) {
  const SimtPlan plan = MakeSimtPlan(anatomy, group);
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
  const int64_t wanted = std::max(target.sms, 1) / std::max<int64_t>(blocks, 1);
  const int64_t runs = LargestAtMost(RunCounts(plan, target), std::max<int64_t>(wanted, 1));
  part.Decide("tile_m", TilesFor(plan.rows, 16, {16, 32, 64, 96, 128}), tile_m);
  part.Decide("tile_n", TilesFor(plan.columns, 32, {32, 64, 96, 128, 256}), tile_n);
  part.Decide("thread_m", {4, 8, 16}, thread_m);
  part.Decide("thread_n", {4, 8, 16}, thread_n);
  const bool pipelined = plan.CanPipeline();
  // Tiles that are copied ahead had better be short: they are kept in registers through a step.
  part.Decide("tile_k", plan.depth >= 16 ? std::vector<int64_t>{8, 16, 32} : std::vector<int64_t>{tile_k},
              pipelined ? 8 : tile_k);
  part.Decide("runs", RunCounts(plan, target), runs);
  part.Decide("stages", pipelined ? std::vector<int64_t>{2, 3, 4} : std::vector<int64_t>{1},
              pipelined ? 3 : 1);
  // Tiles that are copied ahead take registers, and left alone the assembler takes many.
  part.Decide("resident", pipelined ? std::vector<int64_t>{0, 2} : std::vector<int64_t>{0}, 0);
  // Elements that are read at once along a contiguous depth, at most.
  part.Decide(
      "lanes_k",
      plan.TurnsVectors() ? std::vector<int64_t>{1, kTurnedLanes} : std::vector<int64_t>{kTurnedLanes},
      kTurnedLanes);
  part.legal = [plan](const Values& v) { return plan.Legal(v); };
  MakeDefaultsLegal(&part);
  if (pipelined) AddStarts(plan, target, &part);
  part.emit = [plan](const Values& v, TraceBuilder* b) { Emit(plan, v, b); };
  return part;
}

}  // namespace mycc
