// The GPU rule for reductions over few terms whose input is contiguous along the output's last axis:
// depthwise and grouped convolution, pooling.
//
//   block p.0, n.0:                                     p: the other axes' tiles as one
//     weights of the block's lanes in shared memory, the lanes side by side
//     thread p.1, n.1:
//       window of the input in registers                padding applied on the way
//       acc[h, m, n.2] = identity
//       unrolled: reduction axes, h, m: lanes n.2: acc (op)= f(window, weights)
//       y = epilogue(acc)
//
// Each thread computes several outputs along the last three axes, so that it reads the overlap of their
// windows once.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "codegen/expr/affine.h"
#include "tuner/space/rules/cuda/gpu.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

// A tensor that is copied: the window of an input into a thread's registers, or weights into shared memory.
struct Copied {
  std::string buffer;
  int rank;
};

struct Plan {
  std::string t;
  std::vector<std::string> outer, reduce;
  std::string h, m, n;            // loops; h and m may be empty
  std::vector<std::string> pads;  // computed in registers, in order
  std::vector<int> pad_ranks;
  std::vector<std::string> epilogue;
  std::vector<Copied> windows, weights;
};

std::string Named(const Plan& plan, const std::string& suffix, const std::string& loop) {
  return absl::StrCat(plan.t, suffix, loop.substr(plan.t.size()));
}

void EmitWindow(const Copied& copy, const Plan& plan, const std::string& thread, TraceBuilder* b) {
  const std::string name = b->CacheRead(copy.buffer, plan.t, thread, "local");
  for (int d = 0; d < copy.rank; ++d)
    b->Bind(absl::StrCat(name, ".a", d), d + 1 == copy.rank ? "vector" : "unroll");
}

// The lanes are the first dimension of weights, and the last of their copy.
void EmitWeights(const Copied& copy, const Plan& plan, const std::string& block, int64_t threads,
                 TraceBuilder* b) {
  const std::string name = b->CacheRead(copy.buffer, plan.t, block, "shared");
  std::vector<std::string> layout, loops;
  for (int d = 0; d < copy.rank; ++d) {
    layout.push_back(absl::StrCat((d + 1) % copy.rank));
    loops.push_back(absl::StrCat(name, ".a", d));
  }
  b->Pack(name, layout);
  const std::string flat = b->Fuse(loops);
  b->Split(flat, {threads});
  b->Reorder({SubLoop(flat, 1), SubLoop(flat, 0)});
  b->Bind(SubLoop(flat, 1), "thread");
  b->Bind(SubLoop(flat, 0), "unroll");
}

void Emit(const Plan& plan, const Values& v, TraceBuilder* b) {
  std::vector<std::string> places = plan.outer, inside;
  const auto split = [&](const std::string& loop, int64_t factor) {
    if (loop.empty()) return;
    b->Split(loop, {factor});
    places.push_back(SubLoop(loop, 0));
    inside.push_back(SubLoop(loop, 1));
  };
  split(plan.h, v.at("tile_h"));
  split(plan.m, v.at("tile_m"));
  b->Split(plan.n, {v.at("threads_n"), v.at("lanes")});
  inside.push_back(SubLoop(plan.n, 2));
  std::vector<std::string> order = places;
  order.insert(order.end(), {SubLoop(plan.n, 0), SubLoop(plan.n, 1)});
  order.insert(order.end(), plan.reduce.begin(), plan.reduce.end());
  order.insert(order.end(), inside.begin(), inside.end());
  b->Reorder(order);
  std::string block = SubLoop(plan.n, 0), place;
  const std::string thread = SubLoop(plan.n, 1);
  if (!places.empty()) {
    place = b->Fuse(places);
    b->Split(place, {v.at("threads_p")});
    b->Reorder({SubLoop(place, 0), block, SubLoop(place, 1)});
    b->Bind(SubLoop(place, 0), "block");
  }
  b->Bind(block, "block");
  b->BindAll(plan.reduce, "unroll");
  for (size_t i = plan.pads.size(); i-- > 0;) {
    b->ComputeAt(plan.pads[i], thread);
    for (int d = 0; d < plan.pad_ranks[i]; ++d)
      b->Bind(absl::StrCat(plan.pads[i], ".a", d), d + 1 == plan.pad_ranks[i] ? "vector" : "unroll");
  }
  for (const Copied& copy : plan.windows) EmitWindow(copy, plan, thread, b);
  const int64_t threads = v.at("threads_n") * (places.empty() ? 1 : v.at("threads_p"));
  for (const Copied& copy : plan.weights) EmitWeights(copy, plan, block, threads, b);
  b->CacheWrite(plan.t, thread);
  for (size_t i = 0; i + 1 < plan.epilogue.size(); ++i) b->Inline(plan.epilogue[i]);
  if (!plan.epilogue.empty()) b->ReverseInline(plan.epilogue.back());
  if (!place.empty()) b->Bind(SubLoop(place, 1), "thread");
  b->Bind(thread, "thread");
  for (const char* suffix : {"", ".i", ".w"}) {
    for (const std::string& loop : inside)
      b->Bind(Named(plan, suffix, loop), loop == inside.back() ? "vector" : "unroll");
  }
}

// A sum of axes, so that a thread's window is a box.
bool IsSumOfAxes(const Expr& index) {
  for (const auto& [atom, coefficient] : ToLinear(index).terms) {
    if (atom->op != Op::kVar) return false;
  }
  return true;
}

// Finds the inputs that the stage copies: windows (indexed by several axes at once) and weights whose lanes
// are strided but lie together.
void FindCopied(const Anatomy& anatomy, const Group& group, const Stage& stage, Plan* plan) {
  for (const ExprNode* load : LoadsOf(stage.value)) {
    const auto same = [&](const Copied& c) { return c.buffer == load->buffer->name; };
    const int producer = anatomy.ProducerOf(load->buffer.get());
    if (std::ranges::any_of(plan->windows, same) || std::ranges::any_of(plan->weights, same) ||
        std::ranges::count(group.members, producer) > 0)
      continue;
    bool is_window = false, only_lane = true;
    for (size_t d = 0; d < load->args.size(); ++d) {
      const bool reduced = std::ranges::any_of(stage.reduce_axes,
                                               [&](const Var& r) { return UsesVar(load->args[d], r.get()); });
      const bool spatial =
          std::ranges::any_of(stage.axes, [&](const Var& a) { return UsesVar(load->args[d], a.get()); });
      is_window |= reduced && spatial;
      const bool is_lane = load->args[d]->op == Op::kVar && load->args[d]->var == stage.axes.back();
      const bool whole =
          load->args[d]->op == Op::kVar && reduced && load->args[d]->var->extent == load->buffer->shape[d];
      only_lane &= d == 0 ? is_lane : whole;
    }
    const Copied copied{load->buffer->name, load->buffer->rank()};
    if (is_window && std::ranges::all_of(load->args, IsSumOfAxes)) plan->windows.push_back(copied);
    if (only_lane && load->args.size() > 1) plan->weights.push_back(copied);
  }
}

// Threads along the lanes: all of a row's vectors, or a power of two that leaves few idle.
int64_t ThreadsAlong(int64_t vectors) {
  if (vectors <= 2 * kWarp) return vectors;
  int64_t best = kWarp;
  for (int64_t threads : {16, 8}) {
    if (RoundUp(vectors, threads) * 10 < RoundUp(vectors, best) * 9) best = threads;
  }
  return best;
}

// The same for a thread block of two warps: several of them share an SM's registers better than large ones.
int64_t ThreadsOfSmallBlock(int64_t vectors) { return RoundUp(vectors, 16) == RoundUp(vectors, 8) ? 16 : 8; }

// The number of threads across that leaves the fewest of the warps idle.
int64_t ThreadsAcross(int64_t along) {
  int64_t best = PowerAtLeast(CeilDiv(128, along));
  const auto idle = [&](int64_t across) { return RoundUp(along * across, kWarp) - along * across; };
  return along * best <= 160 && 2 * idle(2 * best) < idle(best) ? 2 * best : best;
}

// How many elements of its input a thread has in registers for a tile; `tile`: the extents of the stage's
// axes in it.
int64_t WindowElements(const Stage& stage, const std::vector<int64_t>& tile) {
  int64_t most = 0;
  for (const ExprNode* load : LoadsOf(stage.value)) {
    int64_t elements = 1;
    for (const Expr& index : load->args) {
      int64_t extent = 1;
      const auto add = [&](const Var& axis, int64_t of_tile) {
        const auto linear = SplitLinear(index, axis.get());
        if (linear) extent += std::abs(linear->coefficient) * (of_tile - 1);
      };
      for (size_t a = 0; a < tile.size(); ++a) add(stage.axes[a], tile[a]);
      for (const Var& axis : stage.reduce_axes) add(axis, axis->extent);
      elements *= extent;
    }
    most = std::max(most, elements);
  }
  return most;
}

// The outputs that a thread computes at once, along the last three axes.
struct ThreadTile {
  int64_t h = 1, m = 1, lanes = 1;

  int64_t outputs() const { return h * m * lanes; }
};

int64_t ElementsOfWindow(const Stage& stage, const ThreadTile& of_thread) {
  const size_t rank = stage.axes.size();
  std::vector<int64_t> tile(rank, 1);
  tile[rank - 1] = of_thread.lanes;
  if (rank > 1) tile[rank - 2] = of_thread.m;
  if (rank > 2) tile[rank - 3] = of_thread.h;
  return WindowElements(stage, tile);
}

int64_t RegistersOf(const Stage& stage, const ThreadTile& tile) {
  constexpr int64_t kOthers = 32;
  return ElementsOfWindow(stage, tile) + tile.outputs() + kOthers;
}

// The window and the sums fit into a thread's registers.
bool FitsRegisters(const Stage& stage, const ThreadTile& tile, int64_t threads) {
  constexpr int64_t kMost = 255, kOfSm = 65536;
  return RegistersOf(stage, tile) <= std::min(kMost, kOfSm / threads);
}

// Two rows of outputs, in vectors of at most half the length, where the windows of neighbouring rows overlap
// so much that a thread then reads a quarter less for each output, and several thread blocks fit on an SM:
// one computes while another waits for its window. nullopt where that is not so.
std::optional<ThreadTile> TileOfTwoRows(const Stage& stage, const ThreadTile& of_one) {
  constexpr int64_t kFewRegisters = 168, kLeastLanes = 4;
  ThreadTile two = {2 * of_one.h, of_one.m, of_one.lanes};
  while (two.lanes > kLeastLanes && RegistersOf(stage, two) > kFewRegisters) two.lanes /= 2;
  const bool reads_less = 4 * ElementsOfWindow(stage, two) * of_one.outputs() <=
                          3 * ElementsOfWindow(stage, of_one) * two.outputs();
  return reads_less && RegistersOf(stage, two) <= kFewRegisters ? std::make_optional(two) : std::nullopt;
}

std::vector<int64_t> TileChoices(const std::string& loop, int64_t extent, std::vector<int64_t> choices) {
  if (loop.empty()) return {1};
  choices.erase(std::remove_if(choices.begin(), choices.end(), [&](int64_t c) { return c > extent; }),
                choices.end());
  return choices;
}

}  // namespace

Part GpuWindowRule(const Anatomy& anatomy, const Group& group, const Target&) {
  const Stage& stage = anatomy.stage(group.anchor);
  const int rank = static_cast<int>(stage.axes.size());
  Plan plan;
  plan.t = anatomy.name(group.anchor);
  std::vector<std::string> axes;
  axes.reserve(rank);
  for (int a = 0; a < rank; ++a) axes.push_back(anatomy.Loop(group.anchor, a));
  plan.n = axes[rank - 1];
  if (rank > 1) plan.m = axes[rank - 2];
  if (rank > 2) plan.h = axes[rank - 3];
  plan.outer.assign(axes.begin(), axes.begin() + std::max(rank - 3, 0));
  int64_t lanes = LanesOf(stage, stage.axes.back()), window = 1;
  for (int r = 0; r < static_cast<int>(stage.reduce_axes.size()); ++r) {
    plan.reduce.push_back(anatomy.ReduceLoop(group.anchor, r));
    window *= stage.reduce_axes[r]->extent;
  }
  for (int s : group.members) {
    if (s > group.anchor) plan.epilogue.push_back(anatomy.name(s));
    if (s >= group.anchor) continue;
    plan.pads.push_back(anatomy.name(s));
    plan.pad_ranks.push_back(static_cast<int>(anatomy.stage(s).axes.size()));
    lanes = std::max(lanes, LanesOf(anatomy.stage(s), anatomy.stage(s).axes.back()));
  }
  FindCopied(anatomy, group, stage, &plan);
  const auto extent = [&](int back) { return rank >= back ? stage.axes[rank - back]->extent : 1; };
  lanes = std::min(lanes, PowerAtLeast(extent(1)));

  Part part;
  part.prefix = absl::StrCat(plan.t, ".");
  part.rule = "window";
  // A row alone is spread over the multiprocessors in blocks of one warp, if need be in short vectors.
  constexpr int64_t kFewBlocks = 32;
  const int64_t most_lanes = lanes;
  while (rank == 1 && lanes > 2 && extent(1) < kFewBlocks * kWarp * lanes) lanes /= 2;
  const std::vector<int64_t> ms = TileChoices(plan.m, extent(2), {1, 2, 4, 7}),
                             hs = TileChoices(plan.h, extent(3), {1, 2, 4});
  const std::optional<ThreadTile> of_rows =
      hs.size() > 1 ? TileOfTwoRows(stage, {1, LargestAtMost(ms, 4), lanes}) : std::nullopt;
  if (of_rows) lanes = of_rows->lanes;
  part.Decide("lanes", PowersOfTwo(1, most_lanes), lanes);
  const int64_t vectors = CeilDiv(extent(1), lanes);
  // A row alone has all of the block's threads.
  const int64_t along = of_rows    ? ThreadsOfSmallBlock(vectors)
                        : rank > 1 ? ThreadsAlong(vectors)
                                   : std::clamp(PowerAtLeast(vectors / kFewBlocks),
                                                std::min(kWarp, PowerAtLeast(vectors)), int64_t{256});
  const int64_t across = of_rows ? 2 * kWarp / along : rank > 1 ? ThreadsAcross(along) : 1;
  int64_t tile_m = LargestAtMost(ms, window * lanes <= 128 ? 4 : 1);
  if (of_rows) tile_m = of_rows->m;
  const int64_t tile_h = of_rows ? of_rows->h : 1;
  while (tile_m > 1 && !FitsRegisters(stage, {tile_h, tile_m, lanes}, along * across)) tile_m /= 2;
  part.Decide("tile_m", ms, tile_m);
  part.Decide("tile_h", hs, tile_h);
  std::vector<int64_t> threads_n = rank > 1 ? std::vector<int64_t>{8, 16, ThreadsAlong(vectors)}
                                            : PowersOfTwo(std::min(kWarp, along), 512);
  part.Decide("threads_n", threads_n, along);
  part.Decide("threads_p", rank > 1 ? PowersOfTwo(4, 32) : std::vector<int64_t>{1}, across);
  part.legal = [window, rank, columns = extent(1)](const Values& v) {
    constexpr int64_t kMostUnrolled = 2048, kMostAccumulators = 96;
    const int64_t threads = v.at("threads_n") * v.at("threads_p");
    if (threads > 512 || (threads < 2 * kWarp && v.at("threads_p") < kWarp && rank > 1)) return false;
    if (v.at("threads_n") / 2 * v.at("lanes") >= columns) return false;
    const int64_t outputs = v.at("lanes") * v.at("tile_m") * v.at("tile_h");
    return outputs == 1 || (outputs <= kMostAccumulators && outputs * window <= kMostUnrolled);
  };
  MakeDefaultsLegal(&part);
  part.emit = [plan](const Values& v, TraceBuilder* b) { Emit(plan, v, b); };
  return part;
}

}  // namespace mycc
