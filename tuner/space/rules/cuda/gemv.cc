// The GPU rule for products of a few rows and a matrix that is contiguous along the sum. Reading the matrix
// bounds its time.
//
//   block others, n.0:
//     thread n.1, thread k (they reduce together): chunk: unroll k: unroll rows, n.2: vector k:
//       t[rows, n] += a[rows, k] * b[n, k]
//     thread n.1, one of the group: y = epilogue(t)
//
// A thread computes several columns with each vector of the rows that it loads.
#include "tuner/space/rules/cuda/gemv.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tuner/space/rules/cuda/gpu.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

constexpr int64_t kMostRows = 8;

struct Plan {
  std::string t, anchor;                          // the reduction; the last of its epilogue, or t
  std::vector<std::string> inlined;               // between them
  std::vector<std::string> others, rows, reduce;  // axes: what follows "t." in the names of loops
  std::string n;
  int64_t num_rows = 1, columns = 1, depth = 1, lanes = 1;
};

std::string Loop(const std::string& block, const std::string& axis) { return absl::StrCat(block, ".", axis); }

// The sum's loops once the thread groups have their columns: n_thread counts groups, n_unroll columns.
void EmitSum(const Plan& plan, const Values& v, const std::string& n_thread, const std::string& n_unroll,
             TraceBuilder* b) {
  const std::string k = Loop(plan.t, plan.reduce.back());
  b->Split(k, {v.at("unroll"), v.at("threads"), v.at("lanes")});
  std::vector<std::string> order;
  for (const std::string& axis : plan.others) order.push_back(Loop(plan.t, axis));
  if (plan.t == plan.anchor) order.push_back(SubLoop(Loop(plan.t, plan.n), 0));
  const size_t blocks = order.size();
  order.insert(order.end(), {n_thread, SubLoop(k, 2)});
  for (size_t r = 0; r + 1 < plan.reduce.size(); ++r) order.push_back(Loop(plan.t, plan.reduce[r]));
  order.insert(order.end(), {SubLoop(k, 0), SubLoop(k, 1)});
  for (const std::string& axis : plan.rows) order.push_back(Loop(plan.t, axis));
  order.insert(order.end(), {n_unroll, SubLoop(k, 3)});
  b->Reorder(order);
  for (size_t i = 0; plan.t == plan.anchor && i < blocks; ++i) b->Bind(order[i], "block");
  if (plan.t == plan.anchor && v.at("resident") > 0) b->MinBlocksPerSm(order[blocks - 1], v.at("resident"));
  b->Bind(n_thread, "thread");
  b->Bind(SubLoop(k, 2), "thread");
  b->Bind(SubLoop(k, 1), "unroll");
  for (const std::string& axis : plan.rows) b->Bind(Loop(plan.t, axis), "unroll");
  b->Bind(n_unroll, "unroll");
  b->Bind(SubLoop(k, 3), "vector");
}

void Emit(const Plan& plan, const Values& v, TraceBuilder* b) {
  const std::string n = Loop(plan.anchor, plan.n), t_n = Loop(plan.t, plan.n);
  for (const std::string& stage : plan.inlined) b->Inline(stage);
  b->Split(n, {v.at("groups"), v.at("columns")});
  if (plan.t == plan.anchor) return EmitSum(plan, v, SubLoop(n, 1), SubLoop(n, 2), b);
  std::vector<std::string> order;
  for (const std::string& axis : plan.others) order.push_back(Loop(plan.anchor, axis));
  order.push_back(SubLoop(n, 0));
  const std::vector<std::string> blocks = order;
  order.push_back(SubLoop(n, 1));
  for (const std::string& axis : plan.rows) order.push_back(Loop(plan.anchor, axis));
  order.push_back(SubLoop(n, 2));
  b->Reorder(order);
  b->BindAll(blocks, "block");
  if (v.at("resident") > 0) b->MinBlocksPerSm(blocks.back(), v.at("resident"));
  b->ComputeAt(plan.t, blocks.back());
  b->Split(t_n, {v.at("columns")});
  EmitSum(plan, v, SubLoop(t_n, 0), SubLoop(t_n, 1), b);
  b->LanePredicate(SubLoop(n, 1), v.at("threads"));
  b->Bind(SubLoop(n, 1), "thread");
  b->Bind(absl::StrCat(SubLoop(n, 1), ".e"), "thread");
  for (const std::string& axis : plan.rows) b->Bind(Loop(plan.anchor, axis), "unroll");
  b->Bind(SubLoop(n, 2), "unroll");
}

}  // namespace

bool IsGemv(const Anatomy& anatomy, const Group& group) {
  int sums = 0;
  for (int s : group.members) {
    const Stage& stage = anatomy.stage(s);
    if (stage.axes.size() != anatomy.stage(group.anchor).axes.size()) return false;
    if (stage.reduce == ReduceOp::kNone) continue;
    const auto& c = anatomy.info(s).contraction;
    if (!c || c->groups || PointsOf(stage.axes, c->rows) > kMostRows) return false;
    // A matrix of one column is a sum for each row. The rule for rows gives each sum a block (row.cc).
    if (stage.axes.back()->extent == 1) return false;
    const ExprNode load{Op::kLoad, c->vector.buffer->dtype, c->vector.index, {}, nullptr, c->vector.buffer};
    if (StrideOf(load, stage.reduce_axes.back()) != 1) return false;
    ++sums;
  }
  return sums == 1;
}

Part GemvPart(const Anatomy& anatomy, const Group& group, const Target& target) {
  Plan plan;
  plan.anchor = anatomy.name(group.anchor);
  int64_t others = 1;
  for (int s : group.members) {
    const Stage& stage = anatomy.stage(s);
    if (stage.reduce == ReduceOp::kNone) {
      if (s != group.anchor) plan.inlined.push_back(anatomy.name(s));
      continue;
    }
    plan.t = anatomy.name(s);
    const Contraction& c = *anatomy.info(s).contraction;
    for (int a : c.rows) plan.rows.push_back(stage.axes[a]->name);
    const int n = static_cast<int>(stage.axes.size()) - 1;
    for (int a = 0; a < n; ++a) {
      if (std::ranges::count(c.rows, a)) continue;
      plan.others.push_back(stage.axes[a]->name);
      others *= stage.axes[a]->extent;
    }
    plan.n = stage.axes[n]->name;
    plan.columns = stage.axes[n]->extent;
    plan.num_rows = PointsOf(stage.axes, c.rows);
    for (const Var& axis : stage.reduce_axes) plan.reduce.push_back(axis->name);
    plan.depth = stage.reduce_axes.back()->extent;
    plan.lanes = LanesOf(stage, stage.reduce_axes.back());
  }
  Part part;
  part.prefix = absl::StrCat(plan.anchor, ".");
  part.rule = "gemv";
  const int64_t vectors = CeilDiv(plan.depth, plan.lanes);
  const int64_t threads = std::clamp(PowerAtLeast(CeilDiv(vectors, 8)), kWarp, int64_t{256});
  int64_t columns = 4;
  while (columns > 1 && others * CeilDiv(plan.columns, columns) < int64_t{2} * std::max(target.sms, 1))
    columns /= 2;
  part.Decide("threads", {32, 64, 128, 256, 512}, threads);
  part.Decide("groups", {1, 2, 4}, std::max<int64_t>(128 / threads, 1));
  part.Decide("columns", {1, 2, 4, 8}, columns);
  part.Decide("unroll", {1, 2, 3, 4, 5, 6, 7, 8}, vectors >= 2 * threads ? 2 : 1);
  part.Decide("resident", {0, 1, 2, 3, 4, 6, 8}, 0);
  part.Decide("lanes", {plan.lanes}, plan.lanes);
  part.legal = [plan](const Values& v) {
    constexpr int64_t kMostAccumulators = 32;
    constexpr int64_t kThreadsOfSm = 2048;
    const int64_t threads = v.at("threads") * v.at("groups");
    // Turns of other lengths are for depths that they cut without a rest.
    const bool cuts_whole = plan.depth % (v.at("threads") * v.at("lanes") * v.at("unroll")) == 0;
    if (PowerAtLeast(v.at("unroll")) != v.at("unroll") && !cuts_whole) return false;
    if (v.at("resident") * threads > kThreadsOfSm) return false;
    // A block has no more columns than there are: the sums' loops are those of its epilogue.
    return threads >= kWarp && threads <= kMaxBlockThreads &&
           (v.at("groups") * v.at("columns") <= plan.columns) &&
           plan.num_rows * v.at("columns") <= kMostAccumulators;
  };
  MakeDefaultsLegal(&part);
  part.emit = [plan](const Values& v, TraceBuilder* b) { Emit(plan, v, b); };
  return part;
}

}  // namespace mycc
