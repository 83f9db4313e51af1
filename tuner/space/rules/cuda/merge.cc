// The GPU rule for the merge of a chain's parts (codegen/schedule/split_chain.h): a few partial results for
// each row, with the corrections of each, in one launch.
//
//   block, thread: rows; thread: vectors of a row
//     m = max over parts
//     l = sum over parts, corrected
//     t = sum over parts, corrected                        a vector, in registers
//     o = epilogue(t, l)
//
// Each thread computes the results of its row itself: they are a few numbers for each part, and no thread
// waits.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tuner/space/rules/cuda/gpu.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

struct MergePlan {
  std::vector<std::string> loops;       // of the last stage
  std::vector<std::string> inlined;     // elementwise stages before it
  std::vector<std::string> reductions;  // from the last to the first, without a sum that is the last stage
  std::string sum, sum_lanes, sum_parts;
  bool ends_in_sum = false;  // nothing follows it
};

// A vector of the sum is complete before it is stored.
void EmitLastSum(const MergePlan& plan, const std::string& thread, TraceBuilder* b) {
  const std::string vector = SubLoop(plan.sum_lanes, 1), own = vector.substr(plan.sum.size());
  b->Reorder({plan.sum_parts, vector});
  b->CacheWrite(plan.sum, thread);
  for (const char* part : {"", ".i", ".w"}) b->Bind(absl::StrCat(plan.sum, part, own), "vector");
}

void EmitMerge(const MergePlan& plan, const Values& v, TraceBuilder* b) {
  for (const std::string& stage : plan.inlined) b->Inline(stage);
  const std::string lanes = plan.loops.back();
  const std::string rows = b->Fuse({plan.loops.begin(), plan.loops.end() - 1});
  b->Split(lanes, {v.at("lanes")});
  b->Split(rows, {v.at("rows")});
  b->Bind(SubLoop(rows, 0), "block");
  b->Bind(SubLoop(rows, 1), "thread");
  const std::string thread = SubLoop(lanes, 0);
  if (!plan.ends_in_sum) b->Bind(SubLoop(lanes, 1), "vector");
  for (const std::string& reduction : plan.reductions) b->ComputeAt(reduction, thread);
  if (plan.ends_in_sum) EmitLastSum(plan, thread, b);
  b->Bind(thread, "thread");
  if (plan.ends_in_sum) return;
  b->Reorder({plan.sum_parts, plan.sum_lanes});
  b->Bind(plan.sum_lanes, "vector");
}

}  // namespace

Part GpuMergeRule(const Anatomy& anatomy, const Group& group, const Target& target) {
  const int last = group.members.back();
  const Stage& stage = anatomy.stage(last);
  MergePlan plan;
  for (size_t a = 0; a < stage.axes.size(); ++a)
    plan.loops.push_back(anatomy.Loop(last, static_cast<int>(a)));
  plan.sum = anatomy.name(group.anchor);
  plan.sum_lanes = anatomy.Loop(group.anchor, static_cast<int>(stage.axes.size()) - 1);
  plan.sum_parts = anatomy.ReduceLoop(group.anchor, 0);
  plan.ends_in_sum = last == group.anchor;
  for (auto s = group.members.rbegin(); s != group.members.rend(); ++s) {
    if (plan.ends_in_sum && *s == last) continue;
    if (anatomy.stage(*s).reduce != ReduceOp::kNone) {
      plan.reductions.push_back(anatomy.name(*s));
    } else if (*s != last) {
      plan.inlined.push_back(anatomy.name(*s));
    }
  }
  int64_t rows = 1;
  for (size_t a = 0; a + 1 < stage.axes.size(); ++a) rows *= stage.axes[a]->extent;
  const int64_t columns = stage.axes.back()->extent;
  const int64_t lanes = std::min(
      LanesOf(anatomy.stage(group.anchor), anatomy.stage(group.anchor).axes.back()), PowerAtLeast(columns));
  Part part;
  part.prefix = absl::StrCat(plan.sum, ".");
  part.rule = "merge";
  part.Decide("lanes", PowersOfTwo(1, lanes), lanes);
  // Blocks for all multiprocessors come before full ones.
  const int64_t most = std::clamp<int64_t>(128 * lanes / columns, 1, 16);
  part.Decide("rows", PowersOfTwo(1, 16),
              std::clamp<int64_t>(PowerAtMost(CeilDiv(rows, target.sms)), 1, most));
  part.legal = [columns](const Values& v) {
    return CeilDiv(columns, v.at("lanes")) * v.at("rows") <= kMaxBlockThreads;
  };
  MakeDefaultsLegal(&part);
  part.emit = [plan](const Values& v, TraceBuilder* b) { EmitMerge(plan, v, b); };
  return part;
}

}  // namespace mycc
