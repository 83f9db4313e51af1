// The CPU rule for stages without a reduction: elementwise chains, broadcasts, transposes, concatenations,
// gathers.
//
//   parallel outer loops fused:
//     last.0: unroll u: vector
//
// or, where some input is strided along the output's last axis and contiguous along another one, c:
//
//   parallel outer, c.0, last.0:
//     tile of c.1 x last.1, in squares that are turned in registers, or staged through a local copy
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tuner/space/part.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

enum TransposeHow : int64_t { kVectorStores = 0, kVectorLoads = 1, kStaged = 2, kTurned = 3 };

// The read that decides a transpose: contiguous along axis `axis`, strided along the last one. -1: none.
struct StridedRead {
  int axis = -1;
  Buffer buffer;
};

StridedRead FindStridedRead(const Stage& stage) {
  for (const ExprNode* load : LoadsOf(stage.value)) {
    const auto last = StrideOf(*load, stage.axes.back());
    if (last && (*last == 0 || *last == 1)) continue;
    for (int a = 0; a + 1 < static_cast<int>(stage.axes.size()); ++a) {
      const auto stride = StrideOf(*load, stage.axes[a]);
      if (stride && *stride == 1 && stage.axes[a]->extent > 1) return {a, load->buffer};
    }
  }
  return {};
}

struct Plan {
  std::string t;
  std::vector<std::string> loops;
  std::vector<int64_t> extents;
  bool flat;
  StridedRead strided;
  int lanes;
};

void EmitRows(const Plan& plan, const Values& v, TraceBuilder* b) {
  std::string last = plan.loops.back();
  std::vector<std::string> outer(plan.loops.begin(), plan.loops.end() - 1);
  if (plan.flat) {
    last = b->Fuse(plan.loops);
    outer.clear();
  }
  b->Split(last, {v.at("unroll"), plan.lanes});
  if (v.at("bypass")) b->Nontemporal(outer.empty() ? absl::StrCat(last, ".0") : outer.front());
  b->Bind(absl::StrCat(last, ".2"), "vector");
  b->Bind(absl::StrCat(last, ".1"), "unroll");
  if (!v.at("par")) return;
  b->BindAll(outer, "parallel");
  if (outer.empty()) b->Bind(absl::StrCat(last, ".0"), "parallel");
}

// Rows of a tile that is transposed: a tile with more rows than registers goes through memory.
constexpr int64_t kMaxSquare = 32;

// Squares that the back end loads along c, turns in registers, and stores along the last axis.
void EmitTurned(const Plan& plan, const Values& v, TraceBuilder* b) {
  const std::string c = plan.loops[plan.strided.axis], last = plan.loops.back();
  const int64_t square = std::min<int64_t>(plan.lanes, kMaxSquare);
  b->Split(c, {CeilDiv(v.at("tile_c"), square), square});
  b->Split(last, {CeilDiv(v.at("tile_n"), square), square});
  std::vector<std::string> order;
  for (const std::string& loop : plan.loops) {
    if (loop != c && loop != last) order.push_back(loop);
  }
  const bool along_n = v.at("first") == 1;
  const std::string &outer = along_n ? last : c, &inner = along_n ? c : last;
  order.insert(order.end(), {SubLoop(outer, 0), SubLoop(inner, 0)});
  if (v.at("bypass")) b->Nontemporal(order.front());
  if (v.at("par")) b->BindAll(order, "parallel");
  order.insert(order.end(), {SubLoop(outer, 1), SubLoop(inner, 1), SubLoop(c, 2), SubLoop(last, 2)});
  b->Reorder(order);
  b->Bind(SubLoop(c, 2), "unroll");
  b->Bind(SubLoop(last, 2), "vector");
}

void EmitTiles(const Plan& plan, const Values& v, TraceBuilder* b) {
  if (v.at("how") == kTurned) return EmitTurned(plan, v, b);
  const std::string c = plan.loops[plan.strided.axis], last = plan.loops.back();
  const auto part = SubLoop;
  b->Split(c, {v.at("tile_c")});
  b->Split(last, {v.at("tile_n")});
  std::vector<std::string> order;
  for (const std::string& loop : plan.loops) {
    if (loop != c && loop != last) order.push_back(loop);
  }
  order.insert(order.end(), {part(c, 0), part(last, 0)});
  const std::vector<std::string> blocks = order;
  const bool lanes_along_c = v.at("how") == kVectorLoads;
  order.insert(order.end(), {part(lanes_along_c ? last : c, 1), part(lanes_along_c ? c : last, 1)});
  b->Reorder(order);
  for (const std::string& loop : blocks) {
    if (v.at("par") && loop != blocks.back()) b->Bind(loop, "parallel");
  }
  if (v.at("bypass")) b->Nontemporal(blocks.front());
  if (v.at("how") == kStaged) {
    const std::string copy =
        absl::StrCat(b->CacheRead(plan.strided.buffer->name, plan.t, blocks.back(), "local"), ".a",
                     plan.strided.buffer->rank() - 1);
    b->Split(copy, {plan.lanes});
    b->Bind(absl::StrCat(copy, ".1"), "vector");
  }
  const std::string lane = order.back();
  b->Split(lane, {plan.lanes});
  b->Bind(absl::StrCat(lane, ".1"), "vector");
}

}  // namespace

Part ElementwiseRule(const Anatomy& anatomy, const Group& group, const Target& target) {
  const Stage& stage = anatomy.stage(group.anchor);
  Plan plan{anatomy.name(group.anchor),
            {},
            {},
            false,
            {},
            VectorBytes(target) / std::max(DTypeBytes(stage.output->dtype), 1)};
  for (int a = 0; a < static_cast<int>(stage.axes.size()); ++a) {
    plan.loops.push_back(anatomy.Loop(group.anchor, a));
    plan.extents.push_back(stage.axes[a]->extent);
  }
  Part part;
  part.prefix = absl::StrCat(plan.t, ".");
  part.rule = "elementwise";
  if (plan.loops.empty()) {
    part.emit = [](const Values&, TraceBuilder*) {};
    return part;
  }
  plan.flat = IsFlat(stage);
  plan.strided = FindStridedRead(stage);
  DecideThreads(anatomy, group, target, /*can=*/true, &part);
  DecideBypass(anatomy, group.anchor, target, &part);
  if (plan.strided.axis >= 0) {
    part.Decide("how", {kVectorStores, kVectorLoads, kStaged, kTurned}, kTurned, false);
    part.Decide("first", {0, 1}, 0, false);
    // Both sides' runs stay in L2 until their lines are full.
    const std::vector<int64_t> cs = {8, 16, 32, 64, 128, 256}, ns = {8, 16, 32, 64, 128, 256, 1024};
    const int64_t tile_c = LargestAtMost(cs, plan.extents[plan.strided.axis]);
    const int64_t fit = target.l2_bytes / 16 / (tile_c * std::max(DTypeBytes(stage.output->dtype), 1));
    part.Decide("tile_c", cs, tile_c);
    part.Decide("tile_n", ns, LargestAtMost(ns, std::min(fit, plan.extents.back())));
    part.emit = [plan](const Values& v, TraceBuilder* b) { EmitTiles(plan, v, b); };
  } else {
    part.Decide("unroll", {1, 2, 4, 8}, 2);
    part.emit = [plan](const Values& v, TraceBuilder* b) { EmitRows(plan, v, b); };
  }
  return part;
}

}  // namespace mycc
