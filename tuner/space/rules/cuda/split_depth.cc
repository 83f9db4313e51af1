#include "tuner/space/rules/cuda/split_depth.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {

std::vector<int64_t> SplitsOf(int64_t depth, int64_t step, int64_t tiles, const Target& target) {
  std::vector<int64_t> splits = {1};
  for (const int64_t split : {2, 3, 4, 6, 8, 16}) {
    if (depth >= 4 * split * step && tiles * (split - 1) < int64_t{2} * target.sms) splits.push_back(split);
  }
  return splits;
}

void EmitSumOfParts(const Anatomy& anatomy, const TensorContraction& t, TraceBuilder* b) {
  constexpr int64_t kThreads = 128, kLanes = 4;
  const std::string& sum = anatomy.name(t.stage);
  const int last_stage = t.epilogue.empty() ? t.stage : t.epilogue.back();
  const std::string& last = anatomy.name(last_stage);
  const std::vector<Var>& axes = anatomy.stage(last_stage).axes;
  for (size_t i = 0; i + 1 < t.epilogue.size(); ++i) b->Inline(anatomy.name(t.epilogue[i]));
  const std::string lanes = LoopOf(last, axes.back());
  const int64_t extent = axes.back()->extent;
  b->Split(lanes, {std::min(kThreads, PowerAtLeast((extent + kLanes - 1) / kLanes)), kLanes});
  std::vector<std::string> grid;
  for (size_t a = 0; a + 1 < axes.size(); ++a) grid.push_back(LoopOf(last, axes[a]));
  grid.push_back(SubLoop(lanes, 0));
  const std::string thread = SubLoop(lanes, 1), lane = SubLoop(lanes, 2);
  const bool is_sum = last == sum;
  if (is_sum) {
    std::vector<std::string> order = grid;
    order.insert(order.end(), {thread, absl::StrCat(sum, ".v"), lane});
    b->Reorder(order);
  }
  b->BindAll(grid, "block");
  b->Bind(thread, "thread");
  if (is_sum) {
    b->CacheWrite(sum, thread);
    const std::string suffix = lane.substr(sum.size());
    b->Bind(absl::StrCat(sum, ".v"), "unroll");
    for (const char* part : {"", ".i", ".w"}) b->Bind(absl::StrCat(sum, part, suffix), "vector");
    return;
  }
  b->ComputeAt(sum, thread);
  b->SetScope(sum, "local");
  const std::string own = LoopOf(sum, anatomy.stage(t.stage).axes.back());
  b->Reorder({absl::StrCat(sum, ".v"), own});
  b->Bind(absl::StrCat(sum, ".v"), "unroll");
  b->Bind(own, "vector");
  b->Bind(lane, "vector");
}

}  // namespace mycc
