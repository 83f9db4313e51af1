#include "tuner/space/rules/contraction_depth.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tuner/space/machine.h"
#include "tuner/space/rules/depth_parts.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

// The reduction axis that is cut: an outer one, such as the images of a weight's gradient, where it is long
// enough for even parts; the innermost one else.
int CutAxis(const ContractionPlan& plan) {
  constexpr int64_t kFewestInPart = 8;
  for (const int axis : plan.k_order) {
    if (plan.stage().reduce_axes[axis]->extent >= kFewestInPart * plan.target.threads) return axis;
  }
  return plan.k_order.back();
}

int64_t PartLength(const ContractionPlan& plan, int64_t split, const DepthSteps& steps) {
  const int axis = CutAxis(plan);
  const int64_t extent = plan.stage().reduce_axes[axis]->extent;
  if (axis != plan.k_order.back()) return PartDepth(extent, split, 1);
  return PartDepth(extent, split, steps.kc < extent ? steps.kc : steps.step);
}

// Adding up pays for threads too.
bool SumsInParallel(const ContractionPlan& plan, int64_t split) {
  constexpr int64_t kFewestTerms = 1 << 18;
  return PointsOf(plan.stage().axes) * split >= kFewestTerms;
}

// Other cores' sums come through the cache that all share.
double CyclesOfSum(const ContractionPlan& plan, int64_t split) {
  if (split == 1) return 0;
  const Stage& stage = plan.stage();
  const double bytes = static_cast<double>(PointsOf(stage.axes) * split * DTypeBytes(stage.output->dtype));
  const double threads = SumsInParallel(plan, split) ? plan.target.threads : 1;
  return bytes / threads / MachineOf(plan.target).l3_bytes_per_cycle;
}

}  // namespace

std::vector<int64_t> DepthSplits(const ContractionPlan& plan, int64_t tiles) {
  constexpr int64_t kFewestSteps = 64;  // of a part's innermost reduction
  const int64_t threads = plan.target.threads, extent = plan.stage().reduce_axes[CutAxis(plan)]->extent;
  const int64_t fewest = CutAxis(plan) == plan.k_order.back() ? kFewestSteps : 1;
  std::vector<int64_t> splits = {1};
  for (const int64_t split : {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128}) {
    if (threads > 1 && extent >= fewest * split && tiles * (split - 1) < 4 * threads) splits.push_back(split);
  }
  return splits;
}

bool FitsSplit(const ContractionPlan& plan, int64_t split, const DepthSteps& steps) {
  if (split == 1) return true;
  const int axis = CutAxis(plan);
  const int64_t extent = plan.stage().reduce_axes[axis]->extent, length = PartLength(plan, split, steps);
  const bool cuts_blocks = axis == plan.k_order.back() && steps.kc < extent;
  return length > 1 && CeilDiv(extent, length) == split && (!cuts_blocks || steps.kc < length);
}

int64_t BestSplit(const ContractionPlan& plan, const std::vector<int64_t>& splits, const DepthSteps& steps,
                  const std::function<double(int64_t)>& cycles) {
  constexpr double kFewestGained = 0.1;  // which also pays for a second nest
  int64_t best = 1;
  double best_cycles = cycles(1);
  for (const int64_t split : splits) {
    const double parts = cycles(split) + CyclesOfSum(plan, split);
    if (parts >= (1 - kFewestGained) * best_cycles || !FitsSplit(plan, split, steps)) continue;
    best = split;
    best_cycles = parts;
  }
  return best;
}

ContractionPlan EmitSplit(const ContractionPlan& plan, int64_t split, const DepthSteps& steps,
                          TraceBuilder* b) {
  ContractionPlan parts = plan;
  const int axis = CutAxis(plan);
  const int64_t length = PartLength(plan, split, steps);
  parts.NameLoops(EmitParts(plan.anatomy, plan.group.anchor, axis, length, b));
  parts.outer.insert(parts.outer.begin(), absl::StrCat(parts.t, ".v"));
  parts.epilogue.clear();
  if (axis == plan.k_order.back()) parts.k_extent = length;
  return parts;
}

void EmitSumOfParts(const ContractionPlan& plan, int64_t split, TraceBuilder* b) {
  const Stage& sum = plan.anatomy.stage(plan.group.anchor);
  const std::string terms = absl::StrCat(plan.t, ".v");
  std::vector<std::string> loops;
  for (int a = 0; a < static_cast<int>(sum.axes.size()); ++a)
    loops.push_back(plan.anatomy.Loop(plan.group.anchor, a));
  // Vectors continue across the ends of rows if only the elements themselves are read.
  const bool flat = std::ranges::all_of(plan.epilogue, [&](int s) { return IsFlat(plan.anatomy.stage(s)); });
  if (flat) loops = {b->Fuse(loops)};
  const std::string last = loops.back(), vectors = absl::StrCat(last, ".0"), lane = absl::StrCat(last, ".1");
  b->Split(last, {plan.lanes});
  loops.back() = vectors;
  std::vector<std::string> order = loops;
  order.insert(order.end(), {terms, lane});
  b->Reorder(order);
  if (SumsInParallel(plan, split)) b->BindAll(loops, "parallel");
  b->CacheWrite(plan.t, vectors);
  EmitEpilogue(plan.anatomy, plan.epilogue, b);
  for (const char* suffix : {"", ".i", ".w"})
    b->Bind(absl::StrCat(plan.t, suffix, lane.substr(plan.t.size())), "vector");
}

}  // namespace mycc
