// The GPU rule for few long rows: each stage is a launch, and a reduction two. The first cuts the rows into
// runs, one for each thread block; the second combines the runs' results.
//
//   block rows, run: thread t (they reduce together): chunk: unroll: vector:   B.rf (op)= f(x)
//   block rows: thread run (they reduce together):                             B (op)= B.rf
//   block, thread: unroll: vector:                                             y = g(x, B)
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tuner/space/rules/cuda/gpu.h"
#include "tuner/space/rules/cuda/row_plan.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

constexpr int64_t kInFlight = 4;  // vectors that a thread asks for at a time

struct RunsReduction {
  std::string name;
  std::vector<std::string> rows, along;  // loops
  int cut = 0;                           // which of `along` is cut into runs
  int64_t extent = 1;                    // of that
  int64_t lanes = 1;
};

struct RunsPlan {
  std::vector<RunsReduction> reductions;
  std::optional<JointRows> joint;
  std::vector<std::string> inlined, split_args;
  std::vector<std::string> last;  // loops of an elementwise anchor; empty where a reduction is the output
  int64_t last_lanes = 1, last_elements = 1;
};

std::string PartialLoop(const RunsReduction& r, const std::string& loop) {
  return absl::StrCat(r.name, ".rf", loop.substr(r.name.size()));
}

// Terms of a run: whole vectors of all threads. Below 2, the reduction stays whole.
int64_t RunLength(const RunsReduction& r, const Values& v) {
  const bool innermost = r.cut + 1 == static_cast<int>(r.along.size());
  const int64_t length = CeilDiv(r.extent, v.at("runs"));
  return std::min(innermost ? RoundUp(length, r.lanes) : length, r.extent);
}

void EmitThreads(const std::vector<std::string>& blocks, const std::vector<std::string>& along,
                 int64_t threads, int64_t lanes, TraceBuilder* b) {
  const std::string flat = b->Fuse(along);
  b->Split(flat, {kInFlight, threads, lanes});
  b->Reorder({SubLoop(flat, 2), SubLoop(flat, 0), SubLoop(flat, 1)});
  b->BindAll(blocks, "block");
  b->Bind(SubLoop(flat, 2), "thread");
  b->Bind(SubLoop(flat, 1), "unroll");
  b->Bind(SubLoop(flat, 3), "vector");
}

void EmitReduction(const RunsReduction& r, const Values& v, TraceBuilder* b) {
  const int64_t length = RunLength(r, v);
  if (length < 2 || length >= r.extent) return EmitThreads(r.rows, r.along, v.at("threads"), r.lanes, b);
  b->RFactorRuns(r.along[r.cut], length);
  std::vector<std::string> blocks, along;
  for (const std::string& loop : r.rows) blocks.push_back(PartialLoop(r, loop));
  blocks.push_back(absl::StrCat(r.name, ".rf.v"));
  for (const std::string& loop : r.along) along.push_back(PartialLoop(r, loop));
  std::vector<std::string> order = blocks;
  order.insert(order.end(), along.begin(), along.end());
  b->Reorder(order);
  EmitThreads(blocks, along, v.at("threads"), r.lanes, b);
  const std::string runs = absl::StrCat(r.name, ".v");
  b->Split(runs, {std::clamp(PowerAtLeast(CeilDiv(r.extent, length)), kWarp, int64_t{256})});
  b->Reorder({SubLoop(runs, 1), SubLoop(runs, 0)});
  b->BindAll(r.rows, "block");
  b->Bind(SubLoop(runs, 1), "thread");
}

RunsReduction Describe(const Anatomy& anatomy, const RowMember& m) {
  const Stage& stage = anatomy.stage(m.stage);
  RunsReduction r{m.name, m.rows, m.along};
  for (size_t a = 0; a < stage.reduce_axes.size(); ++a) {
    if (stage.reduce_axes[a]->extent < r.extent) continue;
    r.cut = static_cast<int>(a);
    r.extent = stage.reduce_axes[a]->extent;
  }
  r.lanes = LanesOf(stage, stage.reduce_axes.back());
  return r;
}

}  // namespace

Part RowRunsPart(const Anatomy& anatomy, const RowPlan& rows, const Target& target) {
  RunsPlan plan;
  for (const RowMember& m : rows.members) {
    const Stage& stage = anatomy.stage(m.stage);
    if (m.is_arg) plan.split_args.push_back(m.name);
    if (m.is_reduction) {
      plan.reductions.push_back(Describe(anatomy, m));
    } else if (&m != &rows.members.back()) {
      plan.inlined.push_back(m.name);
    } else if (!stage.axes.empty()) {
      for (int a = 0; a < static_cast<int>(stage.axes.size()); ++a)
        plan.last.push_back(anatomy.Loop(m.stage, a));
      plan.last_lanes = LanesOf(stage, stage.axes.back());
      plan.last_elements = stage.output->num_elements();
    }
  }
  Part part;
  part.prefix = absl::StrCat(rows.members.back().name, ".");
  part.rule = rows.joint ? "row_runs_joint" : "row_runs";
  plan.joint = rows.joint;
  // A few blocks for each SM, each with a dozen vectors for every thread if the rows are that long.
  const int64_t sms = std::max(target.sms, 1), count = std::max<int64_t>(rows.rows_of_output, 1);
  const int64_t most = CeilDiv(rows.length, 256 * rows.lanes * kInFlight);
  std::vector<int64_t> runs;
  for (int64_t waves : {1, 2, 4, 8})
    runs.push_back(std::clamp<int64_t>(waves * sms / count, 1, std::max<int64_t>(most, 1)));
  const int64_t preferred = runs[1];
  part.Decide("runs", runs, preferred);
  part.Decide("threads", {128, 256, 512, 1024}, 256);
  part.Decide("unroll", plan.last.empty() ? std::vector<int64_t>{1} : std::vector<int64_t>{1, 2, 4},
              plan.last.empty() ? 1 : VectorsPerThread(plan.last_elements, plan.last_lanes, 256, 4, target));
  part.emit = [plan](const Values& v, TraceBuilder* b) {
    if (plan.joint) EmitJoint(*plan.joint, b);
    for (const std::string& stage : plan.inlined) b->Inline(stage);
    for (const std::string& block : plan.split_args) b->SplitArg(block);
    for (const RunsReduction& r : plan.reductions) EmitReduction(r, v, b);
    if (!plan.last.empty()) EmitFlat(plan.last, v.at("unroll"), 256, plan.last_lanes, b);
  };
  return part;
}

}  // namespace mycc
