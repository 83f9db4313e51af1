// Reductions over few terms whose output's last axis is contiguous in what they read, on a GPU: depthwise and
// grouped convolution, pooling.
//
//   block, thread: over outer axes, h.0, m.0, n.0 as one
//     window of the input in registers     padding applied on the way
//     acc[h.1, m.1, n.1] = identity
//     unrolled: reduction axes, h.1, m.1: lanes n.1: acc (op)= f(window)
//     y = epilogue(acc)
//
// Each thread has several outputs along the last three axes, so that what their windows share is read once.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/expr/affine.h"
#include "tuner/space/rules/cuda/gpu.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

// A tensor that a thread copies into registers: the window of an input, or the lanes' weights.
struct Copied {
  std::string buffer;
  int rank;
  bool whole = false;  // one stretch of memory, whatever its shape: a thread's weights
  int64_t lanes = 1;
};

struct Plan {
  std::string t;
  std::vector<std::string> outer, reduce;
  std::string h, m, n;            // loops; h and m may be empty
  std::vector<std::string> pads;  // computed in registers, in order
  std::vector<int> pad_ranks;
  std::vector<std::string> epilogue;
  std::vector<Copied> copied;
};

std::string Named(const Plan& plan, const std::string& suffix, const std::string& loop) {
  return absl::StrCat(plan.t, suffix, loop.substr(plan.t.size()));
}

// Loops around and inside a thread, after splitting.
struct Tile {
  std::vector<std::string> outside, inside;
};

Tile SplitAxes(const Plan& plan, const Values& v, TraceBuilder* b) {
  Tile tile{plan.outer, {}};
  const auto split = [&](const std::string& loop, int64_t factor) {
    if (loop.empty()) return;
    b->Split(loop, {factor});
    tile.outside.push_back(SubLoop(loop, 0));
    tile.inside.push_back(SubLoop(loop, 1));
  };
  split(plan.h, v.at("tile_h"));
  split(plan.m, v.at("tile_m"));
  split(plan.n, v.at("lanes"));
  return tile;
}

void EmitCopy(const Copied& copy, const Plan& plan, const std::string& thread, TraceBuilder* b) {
  b->CacheRead(copy.buffer, plan.t, thread, "local");
  std::vector<std::string> loops;
  for (int d = 0; d < copy.rank; ++d) loops.push_back(absl::StrCat(copy.buffer, ".r.a", d));
  if (copy.whole) {
    const std::string flat = b->Fuse(loops);
    b->Split(flat, {copy.lanes});
    loops = {SubLoop(flat, 0), SubLoop(flat, 1)};
  }
  for (const std::string& loop : loops) b->Bind(loop, loop == loops.back() ? "vector" : "unroll");
}

void Emit(const Plan& plan, const Values& v, TraceBuilder* b) {
  const Tile tile = SplitAxes(plan, v, b);
  std::vector<std::string> order = tile.outside;
  order.insert(order.end(), plan.reduce.begin(), plan.reduce.end());
  order.insert(order.end(), tile.inside.begin(), tile.inside.end());
  b->Reorder(order);
  const std::string flat = b->Fuse(tile.outside);
  b->Split(flat, {v.at("threads")});
  const std::string thread = SubLoop(flat, 1);
  for (const std::string& loop : plan.reduce) b->Bind(loop, "unroll");
  for (size_t i = plan.pads.size(); i-- > 0;) {
    b->ComputeAt(plan.pads[i], thread);
    for (int d = 0; d < plan.pad_ranks[i]; ++d)
      b->Bind(absl::StrCat(plan.pads[i], ".a", d), d + 1 == plan.pad_ranks[i] ? "vector" : "unroll");
  }
  for (const Copied& copy : plan.copied) EmitCopy(copy, plan, thread, b);
  b->CacheWrite(plan.t, thread);
  for (size_t i = 0; i + 1 < plan.epilogue.size(); ++i) b->Inline(plan.epilogue[i]);
  if (!plan.epilogue.empty()) b->ReverseInline(plan.epilogue.back());
  b->Bind(SubLoop(flat, 0), "block");
  b->Bind(thread, "thread");
  for (const char* suffix : {"", ".i", ".w"}) {
    for (const std::string& loop : tile.inside)
      b->Bind(Named(plan, suffix, loop), loop == tile.inside.back() ? "vector" : "unroll");
  }
}

// A sum of axes, so that a thread's window is a box.
bool IsSumOfAxes(const Expr& index) {
  for (const auto& [atom, coefficient] : ToLinear(index).terms) {
    if (atom->op != Op::kVar) return false;
  }
  return true;
}

// What the stage reads of its inputs: windows (indexed by several axes at once) and weights whose lanes are
// strided but lie together.
void FindCopied(const Anatomy& anatomy, const Group& group, const Stage& stage, Plan* plan) {
  for (const ExprNode* load : LoadsOf(stage.value)) {
    const auto same = [&](const Copied& c) { return c.buffer == load->buffer->name; };
    const int producer = anatomy.ProducerOf(load->buffer.get());
    if (std::any_of(plan->copied.begin(), plan->copied.end(), same) ||
        std::count(group.members.begin(), group.members.end(), producer) > 0)
      continue;
    bool is_window = false, only_lane = true;
    for (size_t d = 0; d < load->args.size(); ++d) {
      const bool reduced = std::any_of(stage.reduce_axes.begin(), stage.reduce_axes.end(),
                                       [&](const Var& r) { return UsesVar(load->args[d], r.get()); });
      const bool spatial = std::any_of(stage.axes.begin(), stage.axes.end(),
                                       [&](const Var& a) { return UsesVar(load->args[d], a.get()); });
      is_window |= reduced && spatial;
      const bool is_lane = load->args[d]->op == Op::kVar && load->args[d]->var == stage.axes.back();
      const bool whole =
          load->args[d]->op == Op::kVar && reduced && load->args[d]->var->extent == load->buffer->shape[d];
      only_lane &= d == 0 ? is_lane : whole;
    }
    if (is_window && std::all_of(load->args.begin(), load->args.end(), IsSumOfAxes))
      plan->copied.push_back({load->buffer->name, load->buffer->rank()});
    if (only_lane && load->args.size() > 1)
      plan->copied.push_back({load->buffer->name, load->buffer->rank(), true,
                              kAccessBytes / std::max(DTypeBytes(load->buffer->dtype), 1)});
  }
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
  part.Decide("lanes", PowersOfTwo(1, lanes), lanes);
  const std::vector<int64_t> ms = TileChoices(plan.m, extent(2), {1, 2, 4, 7, 8});
  const int64_t most = window * lanes <= 128 ? 4 : 1;
  part.Decide("tile_m", ms, LargestAtMost(ms, most));
  part.Decide("tile_h", TileChoices(plan.h, extent(3), {1, 2, 4}), 1);
  part.Decide("threads", {64, 128, 256}, 128);
  part.legal = [window](const Values& v) {
    constexpr int64_t kMostUnrolled = 2048, kMostAccumulators = 96;
    const int64_t outputs = v.at("lanes") * v.at("tile_m") * v.at("tile_h");
    return outputs == 1 || (outputs <= kMostAccumulators && outputs * window <= kMostUnrolled);
  };
  MakeDefaultsLegal(&part);
  part.emit = [plan](const Values& v, TraceBuilder* b) { Emit(plan, v, b); };
  return part;
}

}  // namespace mycc
