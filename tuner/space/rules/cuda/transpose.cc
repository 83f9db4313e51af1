// The GPU rule for transposes and permutes. Loads and stores both want whole 32-byte sectors, so a tile is
// turned on the way:
//
//   registers: each thread has a tile of both axes, in vectors of up to 16 bytes on either side
//     block c.0, n.0: thread c.1, n.1:
//       copy of the tile: unroll n: vector c      out[.., c, n]: unroll c.2: vector n.2
//   shared: a block has a tile in shared memory, with padded rows, one element for each thread
//     block c.0, n.0:
//       copy of the tile: thread n, c: unroll     out[.., c, n]: thread c, n: unroll
//   gathered: the same, but loads and stores are whole vectors, which a thread gathers from the tile's rows
//     block c.0, n.0:
//       copy: thread n.1, c.0: unroll: vector c   out[.., c, n]: thread c.2, n.1: unroll c.1: vector n.2
//
// where c is the axis along which the input is contiguous. The first and the last need vector-aligned rows;
// the second takes everything.
#include "tuner/space/rules/cuda/transpose.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/expr/product.h"
#include "tuner/space/rules/cuda/gpu.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

enum How : int64_t { kRegisters = 0, kShared = 1, kGathered = 2 };

struct Plan {
  std::string t, buffer, c, n;      // c, n: loops
  std::vector<std::string> others;  // loops
  int c_dim, n_dim, rank;           // dimensions of the buffer
  int64_t bytes;                    // of its elements
};

std::string CopyLoop(const std::string& copy, int dim) { return absl::StrCat(copy, ".a", dim); }

void EmitRegisters(const Plan& plan, const Values& v, TraceBuilder* b) {
  b->Split(plan.c, {v.at("threads") / v.at("threads_n"), v.at("lanes_c")});
  b->Split(plan.n, {v.at("threads_n"), v.at("lanes_n")});
  std::vector<std::string> blocks = plan.others;
  blocks.insert(blocks.end(), {SubLoop(plan.c, 0), SubLoop(plan.n, 0)});
  std::vector<std::string> order = blocks;
  for (int i : {1, 2}) order.insert(order.end(), {SubLoop(plan.c, i), SubLoop(plan.n, i)});
  b->Reorder(order);
  b->BindAll(blocks, "block");
  const std::string tile = b->CacheRead(plan.buffer, plan.t, SubLoop(plan.n, 1), "local");
  for (int d = 0; d < plan.rank; ++d) b->Bind(CopyLoop(tile, d), d == plan.c_dim ? "vector" : "unroll");
  b->BindAll({SubLoop(plan.c, 1), SubLoop(plan.n, 1)}, "thread");
  b->Bind(SubLoop(plan.c, 2), "unroll");
  b->Bind(SubLoop(plan.n, 2), "vector");
}

// Threads of a tile: along each side's contiguous axis first.
void EmitShared(const Plan& plan, const Values& v, TraceBuilder* b) {
  const int64_t tile_c = v.at("tile_c"), tile_n = v.at("tile_n"), threads = v.at("threads");
  const int64_t rows_c = std::max<int64_t>(threads / tile_n, 1),
                rows_n = std::max<int64_t>(threads / tile_c, 1);
  b->Split(plan.c, {CeilDiv(tile_c, rows_c), rows_c});
  b->Split(plan.n, {tile_n});
  std::vector<std::string> blocks = plan.others;
  blocks.insert(blocks.end(), {SubLoop(plan.c, 0), SubLoop(plan.n, 0)});
  std::vector<std::string> order = blocks;
  order.insert(order.end(), {SubLoop(plan.c, 2), SubLoop(plan.n, 1), SubLoop(plan.c, 1)});
  b->Reorder(order);
  b->BindAll(blocks, "block");
  const std::string tile = b->CacheRead(plan.buffer, plan.t, blocks.back(), "shared");
  // Rows an odd number of banks apart.
  b->Layout(tile, std::max<int64_t>(4 / plan.bytes, 1), 0);
  const std::string n = CopyLoop(tile, plan.n_dim), c = CopyLoop(tile, plan.c_dim);
  b->Split(n, {rows_n});
  std::vector<std::string> copy;
  for (int d = 0; d < plan.rank; ++d) {
    if (d != plan.n_dim && d != plan.c_dim) copy.push_back(CopyLoop(tile, d));
  }
  copy.insert(copy.end(), {SubLoop(n, 1), c, SubLoop(n, 0)});
  b->Reorder(copy);
  b->BindAll({SubLoop(n, 1), c}, "thread");
  b->Bind(SubLoop(n, 0), "unroll");
  b->BindAll({SubLoop(plan.c, 2), SubLoop(plan.n, 1)}, "thread");
  b->Bind(SubLoop(plan.c, 1), "unroll");
}

// Threads for the tile's vectors on one side, and the rows that are left for each.
struct Spread {
  int64_t across, rows;
};
Spread SpreadOf(int64_t threads, int64_t row, int64_t lanes, int64_t rows) {
  const int64_t across = std::max<int64_t>(threads / (row / lanes), 1);
  return {across, rows / across};
}

void EmitGathered(const Plan& plan, const Values& v, TraceBuilder* b) {
  const int64_t tile_c = v.at("tile_c"), tile_n = v.at("tile_n"), threads = v.at("threads");
  const Spread in = SpreadOf(threads, tile_c, v.at("lanes_c"), tile_n),
               out = SpreadOf(threads, tile_n, v.at("lanes_n"), tile_c);
  b->Split(plan.c, {out.rows, out.across});
  b->Split(plan.n, {tile_n / v.at("lanes_n"), v.at("lanes_n")});
  std::vector<std::string> blocks = plan.others;
  blocks.insert(blocks.end(), {SubLoop(plan.c, 0), SubLoop(plan.n, 0)});
  std::vector<std::string> order = blocks;
  order.insert(order.end(), {SubLoop(plan.c, 2), SubLoop(plan.n, 1), SubLoop(plan.c, 1), SubLoop(plan.n, 2)});
  b->Reorder(order);
  b->BindAll(blocks, "block");
  const std::string tile = b->CacheRead(plan.buffer, plan.t, blocks.back(), "shared");
  // Rows an odd number of banks apart, and more than one: two vectors of a row do not meet.
  b->Layout(tile, std::max<int64_t>(int64_t{5} * 4 / plan.bytes, 1), 0);
  const std::string n = CopyLoop(tile, plan.n_dim), c = CopyLoop(tile, plan.c_dim);
  b->Split(n, {in.across});
  b->Split(c, {v.at("lanes_c")});
  std::vector<std::string> copy;
  for (int d = 0; d < plan.rank; ++d) {
    if (d != plan.n_dim && d != plan.c_dim) copy.push_back(CopyLoop(tile, d));
  }
  copy.insert(copy.end(), {SubLoop(n, 1), SubLoop(c, 0), SubLoop(n, 0), SubLoop(c, 1)});
  b->Reorder(copy);
  b->BindAll({SubLoop(n, 1), SubLoop(c, 0)}, "thread");
  b->Bind(SubLoop(n, 0), "unroll");
  b->Bind(SubLoop(c, 1), "vector");
  b->BindAll({SubLoop(plan.c, 2), SubLoop(plan.n, 1)}, "thread");
  b->Bind(SubLoop(plan.c, 1), "unroll");
  b->Bind(SubLoop(plan.n, 2), "vector");
}

// Whether the stage reads the load's tensor in this place alone.
bool IsOnlyRead(const Stage& stage, const ExprNode& load) {
  for (const ExprNode* other : LoadsOf(stage.value)) {
    if (other->buffer != load.buffer) continue;
    for (size_t d = 0; d < load.args.size(); ++d) {
      if (!StructurallyEqual(other->args[d], load.args[d])) return false;
    }
  }
  return true;
}

// Vectors along the contiguous axis that every place of the read allows, of `bytes` at most.
int64_t LanesWithin(int64_t lanes, int64_t extent, int64_t element_bytes) {
  return std::min({lanes, PowerAtMost(extent), kAccessBytes / std::min(element_bytes, kAccessBytes)});
}

// Decisions of the ways other than `how` stay at their defaults, so that no two points are the same schedule.
bool IsLegal(const std::vector<Decision>& decisions, const std::vector<int64_t>& defaults, const Values& v) {
  const int64_t how = v.at("how");
  for (size_t d = 0; d < decisions.size(); ++d) {
    const std::string& name = decisions[d].name;
    const bool of_tiles = name == "tile_c" || name == "tile_n";
    const bool of_registers = name == "threads_n" || name == "lanes_c" || name == "lanes_n";
    if ((how == kRegisters ? of_tiles : of_registers) && v.at(name) != defaults[d]) return false;
  }
  const int64_t smaller = std::min(v.at("tile_c"), v.at("tile_n")),
                larger = std::max(v.at("tile_c"), v.at("tile_n"));
  if (how == kShared) return larger <= 64;
  if (how == kRegisters) return true;
  // A row's vectors are all taken at once, and every thread has one.
  return v.at("threads") * v.at("lanes_c") <= smaller * larger && v.at("threads") * v.at("lanes_c") >= larger;
}

}  // namespace

TransposedRead FindTransposedRead(const Stage& stage) {
  for (const ExprNode* load : LoadsOf(stage.value)) {
    const auto along_last = StrideOf(*load, stage.axes.back());
    if (along_last && (*along_last == 0 || *along_last == 1)) continue;
    if (!IsOnlyRead(stage, *load)) continue;  // one tile could not hold both
    for (int a = 0; a + 1 < static_cast<int>(stage.axes.size()); ++a) {
      if (stage.axes[a]->extent == 1 || StrideOf(*load, stage.axes[a]) != 1) continue;
      const int axis_dim = PlainDim(load->args, stage.axes[a]),
                last_dim = PlainDim(load->args, stage.axes.back());
      if (axis_dim >= 0 && last_dim >= 0) return {a, load, axis_dim, last_dim};
    }
  }
  return {};
}

Part TransposePart(const Anatomy& anatomy, const Group& group, const Target&) {
  const Stage& stage = anatomy.stage(group.anchor);
  const TransposedRead read = FindTransposedRead(stage);
  const int last = static_cast<int>(stage.axes.size()) - 1;
  const int64_t bytes = std::max(DTypeBytes(read.load->buffer->dtype), 1);
  Plan plan{anatomy.name(group.anchor),
            read.load->buffer->name,
            anatomy.Loop(group.anchor, read.axis),
            anatomy.Loop(group.anchor, last),
            {},
            read.axis_dim,
            read.last_dim,
            read.load->buffer->rank(),
            bytes};
  for (int a = 0; a < last; ++a) {
    if (a != read.axis) plan.others.push_back(anatomy.Loop(group.anchor, a));
  }
  const Var &c = stage.axes[read.axis], &n = stage.axes[last];
  const int64_t lanes_c = LanesWithin(AlignedLanes(*read.load->buffer, read.load->args, c), c->extent, bytes);
  const int64_t lanes_n = LanesWithin(LanesOf(stage, n), n->extent, DTypeBytes(stage.output->dtype));
  Part part;
  part.prefix = absl::StrCat(plan.t, ".");
  part.rule = "transpose";
  // Vectors are too short for a sector: the threads of a warp should access adjacent vectors.
  constexpr int64_t kShortBytes = 4;
  const bool is_short = std::min(lanes_c * bytes, lanes_n * DTypeBytes(stage.output->dtype)) < kShortBytes;
  const bool whole = lanes_c * bytes == kAccessBytes && lanes_n == lanes_c;
  part.Decide("how",
              whole ? std::vector<int64_t>{kRegisters, kShared, kGathered}
                    : std::vector<int64_t>{kRegisters, kShared},
              whole      ? kGathered
              : is_short ? kShared
                         : kRegisters,
              false);
  part.Decide("threads", {128, 256, 512}, 256);
  part.Decide("threads_n", {2, 4, 8, 16, 32},
              std::min<int64_t>(4, PowerAtLeast(CeilDiv(n->extent, lanes_n))));
  part.Decide("lanes_c", {std::max<int64_t>(lanes_c / 2, 1), lanes_c}, lanes_c);
  part.Decide("lanes_n", {std::max<int64_t>(lanes_n / 2, 1), lanes_n}, lanes_n);
  part.Decide("tile_c", {32, 64, 128}, whole ? 64 : 32);
  part.Decide("tile_n", {32, 64, 128}, bytes < 4 || whole ? 64 : 32);
  part.legal = [decisions = part.decisions, defaults = part.defaults](const Values& v) {
    return IsLegal(decisions, defaults, v);
  };
  MakeDefaultsLegal(&part);
  part.emit = [plan](const Values& v, TraceBuilder* b) {
    switch (v.at("how")) {
      case kShared: return EmitShared(plan, v, b);
      case kGathered: return EmitGathered(plan, v, b);
      default: return EmitRegisters(plan, v, b);
    }
  };
  return part;
}

}  // namespace mycc
