// The GPU rule for reductions over many terms whose input is contiguous along the output's last axis: column
// sums, pooling over whole images, products of a row and a matrix. Lanes and threads lie along the contiguous
// axis. Where the columns are too few to fill the GPU, each column is cut into stretches, which a second
// launch combines.
//
//   block outer, n.0, v.0; thread v.1, n.1: acc = identity; for r: lanes: acc (op)= f; t.rf[v, n] = acc
//   block outer, n.0: thread v (they reduce together), thread n.1:  t (op)= t.rf[v, n]
//                     thread n.1:                                   y = epilogue(t)
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tuner/space/rules/cuda/gpu.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

struct Plan {
  std::string t;
  std::vector<std::string> axes, reduce;  // what follows "t." in the names of loops
  int cut = 0;                            // the longest reduction axis
  int64_t length = 1, columns = 1;        // of that, and of the output's last
  std::vector<std::string> pads, epilogue;
};

std::vector<std::string> LoopsOf(const std::string& block, const std::vector<std::string>& axes) {
  std::vector<std::string> loops;
  loops.reserve(axes.size());
  for (const std::string& axis : axes) loops.push_back(absl::StrCat(block, ".", axis));
  return loops;
}

// Private sums of each thread: of whole columns, or of stretches when `work` has the loop `.v` of them.
void EmitStretches(const Plan& plan, const Values& v, const std::string& work, bool has_stretches,
                   TraceBuilder* b) {
  constexpr int64_t kInFlight = 4;
  std::vector<std::string> order = LoopsOf(work, plan.axes);
  const std::string n = order.back(), cut = absl::StrCat(work, ".", plan.reduce[plan.cut]);
  b->Split(n, {v.at("threads_x"), v.at("lanes")});
  b->Split(cut, {kInFlight});
  order.back() = SubLoop(n, 0);
  std::vector<std::string> threads = {SubLoop(n, 1)};
  if (has_stretches) {
    const std::string stretch = absl::StrCat(work, ".v");
    b->Split(stretch, {v.at("threads_y")});
    order.push_back(SubLoop(stretch, 0));
    threads.insert(threads.begin(), SubLoop(stretch, 1));
  }
  const std::vector<std::string> blocks = order;
  order.insert(order.end(), threads.begin(), threads.end());
  for (const std::string& axis : plan.reduce) {
    if (axis != plan.reduce[plan.cut]) order.push_back(absl::StrCat(work, ".", axis));
  }
  order.insert(order.end(), {SubLoop(cut, 0), SubLoop(cut, 1), SubLoop(n, 2)});
  b->Reorder(order);
  b->BindAll(blocks, "block");
  b->CacheWrite(work, SubLoop(n, 1));
  b->BindAll(threads, "thread");
  b->Bind(SubLoop(cut, 1), "unroll");
  for (const char* suffix : {"", ".i", ".w"})
    b->Bind(absl::StrCat(work, suffix, ".", plan.axes.back(), ".2"), "vector");
}

// The stretches of each column, combined by a group of threads; neighbouring threads have neighbouring
// columns.
void EmitCombination(const Plan& plan, int64_t stretches, TraceBuilder* b) {
  constexpr int64_t kThreads = 256, kMostUnrolled = 32;
  // A power of two, so that groups across warps are whole warps.
  const int64_t columns = std::min(kWarp, PowerAtMost(plan.columns));
  const int64_t group = std::min(PowerAtLeast(stretches), kThreads / columns);
  const std::string last = plan.epilogue.empty() ? plan.t : plan.epilogue.back();
  std::vector<std::string> blocks = LoopsOf(last, plan.axes);
  const std::string n = blocks.back();
  b->Split(n, {columns});
  blocks.back() = SubLoop(n, 0);
  b->BindAll(blocks, "block");
  std::string column = SubLoop(n, 1);
  std::vector<std::string> order;
  if (last != plan.t) {
    for (size_t i = 0; i + 1 < plan.epilogue.size(); ++i) b->Inline(plan.epilogue[i]);
    b->ComputeAt(plan.t, blocks.back());
    b->SetScope(plan.t, "shared");
    b->Bind(column, "thread");
    order = LoopsOf(plan.t, plan.axes);
    column = order.back();
    order.pop_back();
  }
  const std::string stretch = absl::StrCat(plan.t, ".v");
  b->Split(stretch, {group});
  order.insert(order.end(), {SubLoop(stretch, 1), column, SubLoop(stretch, 0)});
  b->Reorder(order);
  if (last == plan.t) {
    b->CacheWrite(plan.t, blocks.back());
    b->SetScope(absl::StrCat(plan.t, ".acc"), "shared");
  }
  b->Bind(SubLoop(stretch, 1), "thread");
  b->Bind(column, "thread");
  if (CeilDiv(stretches, group) <= kMostUnrolled) b->Bind(SubLoop(stretch, 0), "unroll");
  if (last != plan.t) return;
  for (const char* suffix : {".i", ".w"})
    b->Bind(absl::StrCat(plan.t, suffix, column.substr(plan.t.size())), "thread");
}

// Terms along the cut axis that one stretch has.
int64_t StretchLength(const Plan& plan, const Values& v) { return CeilDiv(plan.length, v.at("stretches")); }

void Emit(const Plan& plan, const Values& v, TraceBuilder* b) {
  for (const std::string& pad : plan.pads) b->Inline(pad);
  const int64_t length = StretchLength(plan, v);
  if (length < 2 || length >= plan.length) {
    EmitStretches(plan, v, plan.t, false, b);
    for (size_t i = 0; i + 1 < plan.epilogue.size(); ++i) b->Inline(plan.epilogue[i]);
    if (!plan.epilogue.empty()) b->ReverseInline(plan.epilogue.back());
    return;
  }
  b->RFactorRuns(absl::StrCat(plan.t, ".", plan.reduce[plan.cut]), length);
  // Columns lie together, as they are summed up: stores and loads are whole vectors.
  std::vector<std::string> layout = {absl::StrCat(plan.axes.size())};
  for (size_t a = 0; a < plan.axes.size(); ++a) layout.push_back(absl::StrCat(a));
  b->Pack(absl::StrCat(plan.t, ".rf"), layout);
  EmitStretches(plan, v, absl::StrCat(plan.t, ".rf"), true, b);
  EmitCombination(plan, CeilDiv(plan.length, length), b);
}

}  // namespace

Part GpuColumnsRule(const Anatomy& anatomy, const Group& group, const Target& target) {
  const Stage& stage = anatomy.stage(group.anchor);
  Plan plan;
  plan.t = anatomy.name(group.anchor);
  for (const Var& axis : stage.axes) plan.axes.push_back(axis->name);
  int64_t terms = 1;
  const int64_t columns = plan.columns = stage.axes.back()->extent;
  for (size_t r = 0; r < stage.reduce_axes.size(); ++r) {
    const Var& axis = stage.reduce_axes[r];
    plan.reduce.push_back(axis->name);
    terms *= axis->extent;
    if (axis->extent <= plan.length) continue;
    plan.length = axis->extent;
    plan.cut = static_cast<int>(r);
  }
  for (int s : group.members) {
    if (s < group.anchor) plan.pads.push_back(anatomy.name(s));
    if (s > group.anchor) plan.epilogue.push_back(anatomy.name(s));
  }
  std::ranges::reverse(plan.pads);
  int64_t lanes = 1;
  for (const ExprNode* load : LoadsOf(stage.value)) {
    if (StrideOf(*load, stage.axes.back()) == 1)
      lanes = std::max(lanes, std::min(AlignedLanes(*load->buffer, load->args, stage.axes.back()),
                                       kAccessBytes / std::max(DTypeBytes(load->buffer->dtype), 1)));
  }
  lanes = std::min(lanes, PowerAtLeast(columns));

  Part part;
  part.prefix = absl::StrCat(plan.t, ".");
  part.rule = "columns";
  const int64_t across = PowerAtLeast(CeilDiv(columns, lanes));
  const int64_t threads_x = std::min<int64_t>(across, kWarp), threads_y = 256 / threads_x;
  const int64_t outer = stage.output->num_elements() / columns;
  // Threads enough to fill the GPU, unless a stretch would be only a few terms.
  constexpr int64_t kThreadsOfSm = 1024, kFewestTerms = 16;
  const int64_t wanted = CeilDiv(kThreadsOfSm * std::max(target.sms, 1), outer * CeilDiv(columns, lanes));
  const int64_t stretches = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(terms / kFewestTerms, 1));
  std::vector<int64_t> choices = {1};
  for (int64_t percent : {25, 50, 100, 200})
    choices.push_back(std::clamp<int64_t>(stretches * percent / 100, 1, plan.length));
  part.Decide("stretches", choices, std::min(stretches, plan.length));
  part.Decide("lanes", PowersOfTwo(1, lanes), lanes);
  part.Decide("threads_x", PowersOfTwo(1, 256), threads_x);
  part.Decide("threads_y", PowersOfTwo(1, 256), stretches == 1 ? 1 : threads_y);
  part.legal = [columns, plan](const Values& v) {
    const int64_t threads = v.at("threads_x") * v.at("threads_y"), length = StretchLength(plan, v);
    if (v.at("threads_x") > 1 && v.at("threads_x") / 2 * v.at("lanes") >= columns) return false;
    if (length < 2 || length >= plan.length) return v.at("threads_y") == 1;
    return threads >= 4 * kWarp && threads <= kMaxBlockThreads;
  };
  MakeDefaultsLegal(&part);
  part.emit = [plan](const Values& v, TraceBuilder* b) { Emit(plan, v, b); };
  return part;
}

}  // namespace mycc
