// The CPU rule for reductions whose input is contiguous along the output's last axis, and that no contraction
// instruction covers: pooling, depthwise and grouped convolution, column sums, products in types without a
// fast instruction.
//
//   parallel outer axes, m.0, n.0:
//     acc[mr, nr] = identity
//     reduction axes: unrolled mr: vectors nr: acc (op)= f
//     y = epilogue(acc)
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tuner/space/part.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

struct ConstOperand {
  std::string buffer;
  int lane_dim, rank;
};

// Which of the reduction loops are unrolled: with windows unrolled, neighbouring outputs share what they
// load.
enum Unrolled : int64_t { kNone = 0, kInnermost = 1, kAll = 2 };
constexpr int64_t kMaxWindow = 32;

struct Plan {
  std::string t, n, m;  // m empty: the output has one axis
  std::vector<std::string> outer, reduce;
  int lanes;
  int64_t n_extent, m_extent;
  std::vector<std::string> pads, epilogue;
  std::vector<int> pad_stages;
  std::vector<ConstOperand> repack;
};

// Long reductions that read every element once: whole lines of as many columns as there are registers, since
// there is nothing for neighbouring outputs to share.
bool IsStream(const Stage& stage, int64_t terms) {
  constexpr int64_t kMostTermsOfWindow = 64;
  const std::vector<const ExprNode*> loads = LoadsOf(stage.value);
  return terms > kMostTermsOfWindow && std::ranges::all_of(loads, [&](const ExprNode* load) {
           return std::ranges::all_of(stage.axes, [&](const Var& axis) {
             return axis->extent == 1 || StrideOf(*load, axis).value_or(0) != 0;
           });
         });
}

// Const operands that the lanes read with a stride: their lane dimension goes innermost ahead of time.
std::vector<ConstOperand> FindRepacks(const Anatomy& anatomy, const Stage& stage) {
  std::vector<ConstOperand> result;
  for (const ExprNode* load : LoadsOf(stage.value)) {
    const auto stride = StrideOf(*load, stage.axes.back());
    if (!stride || *stride == 0 || *stride == 1) continue;
    for (const Argument& input : anatomy.workload().inputs) {
      if (input.tensor != load->buffer || !input.is_const) continue;
      const Operand operand{load->buffer, load->args, true, -1};
      const int dim = operand.PlainDim(stage.axes.back());
      if (dim >= 0) result.push_back({load->buffer->name, dim, load->buffer->rank()});
    }
  }
  return result;
}

// The conditions of these stages (a window's padding) are the same for all lanes: inlined they cost a copy of
// the code for the border, and save a pass over the input.
bool IsUniformAlongLanes(const Anatomy& anatomy, const std::vector<int>& stages) {
  return std::ranges::all_of(stages, [&](int s) {
    bool uniform = true;
    Visit(anatomy.stage(s).value, [&](const ExprNode& e) {
      uniform &= e.op != Op::kSelect || !UsesVar(e.args[0], anatomy.stage(s).axes.back().get());
    });
    return uniform;
  });
}

void Emit(const Plan& plan, const Values& v, TraceBuilder* b) {
  const int64_t lanes = v.at("lanes"), nv = v.at("nv"), mr = plan.m.empty() ? 1 : v.at("mr");
  if (v.at("pad") == 1) {
    for (const std::string& pad : plan.pads) b->Inline(pad);
  }
  b->Split(plan.n, {nv, lanes});
  std::vector<std::string> order = plan.outer;
  if (!plan.m.empty()) {
    b->Split(plan.m, {mr});
    order.push_back(SubLoop(plan.m, 0));
  }
  order.push_back(SubLoop(plan.n, 0));
  const std::vector<std::string> blocks = order;
  order.insert(order.end(), plan.reduce.begin(), plan.reduce.end());
  if (!plan.m.empty()) order.push_back(SubLoop(plan.m, 1));
  order.insert(order.end(), {SubLoop(plan.n, 1), SubLoop(plan.n, 2)});
  b->Reorder(order);
  if (v.at("par")) {
    b->BindAll(blocks, "parallel");
  }
  for (const ConstOperand& operand : plan.repack) {
    const std::string copy = b->CacheRead(operand.buffer, plan.t, "root", "packed");
    std::vector<std::string> layout;
    for (int d = 0; d < operand.rank; ++d) {
      if (d != operand.lane_dim) layout.push_back(absl::StrCat(d));
    }
    layout.push_back(absl::StrCat(operand.lane_dim));
    b->Pack(copy, layout);
  }
  b->CacheWrite(plan.t, blocks.back());
  for (size_t i = v.at("window") == kAll ? 0 : plan.reduce.size() - 1;
       v.at("window") != kNone && i < plan.reduce.size(); ++i) {
    b->Bind(plan.reduce[i], "unroll");
  }
  for (size_t i = 0; i + 1 < plan.epilogue.size(); ++i) b->Inline(plan.epilogue[i]);
  if (!plan.epilogue.empty()) b->ReverseInline(plan.epilogue.back());
  for (const char* suffix : {"", ".i", ".w"}) {
    const auto named = [&](const std::string& loop) {
      return absl::StrCat(plan.t, suffix, loop.substr(plan.t.size()));
    };
    b->Bind(named(SubLoop(plan.n, 2)), "vector");
    b->Bind(named(SubLoop(plan.n, 1)), "unroll");
    if (!plan.m.empty()) b->Bind(named(SubLoop(plan.m, 1)), "unroll");
  }
}

Plan PlanOf(const Anatomy& anatomy, const Group& group, const Target& target) {
  const Stage& stage = anatomy.stage(group.anchor);
  const int last = static_cast<int>(stage.axes.size()) - 1;
  Plan plan;
  plan.t = anatomy.name(group.anchor);
  plan.n = anatomy.Loop(group.anchor, last);
  plan.n_extent = stage.axes[last]->extent;
  plan.m_extent = 1;
  for (int a = 0; a < last; ++a) plan.outer.push_back(anatomy.Loop(group.anchor, a));
  if (!plan.outer.empty()) {
    plan.m = plan.outer.back();
    plan.m_extent = stage.axes[last - 1]->extent;
    plan.outer.pop_back();
  }
  for (int r = 0; r < static_cast<int>(stage.reduce_axes.size()); ++r)
    plan.reduce.push_back(anatomy.ReduceLoop(group.anchor, r));
  plan.lanes = VectorBytes(target) / std::max(DTypeBytes(stage.value->dtype), 1);
  for (int s : group.members) {
    if (s < group.anchor) plan.pads.push_back(anatomy.name(s)), plan.pad_stages.push_back(s);
    if (s > group.anchor) plan.epilogue.push_back(anatomy.name(s));
  }
  std::ranges::reverse(plan.pads);
  plan.repack = FindRepacks(anatomy, stage);
  return plan;
}

}  // namespace

Part TileRule(const Anatomy& anatomy, const Group& group, const Target& target) {
  const Stage& stage = anatomy.stage(group.anchor);
  const Plan plan = PlanOf(anatomy, group, target);
  const int64_t window = PointsOf(stage.reduce_axes);

  Part part;
  part.prefix = absl::StrCat(plan.t, ".");
  part.rule = "tile";
  DecideThreads(anatomy, group, target, /*can=*/true, &part);
  std::vector<int64_t> lanes = {plan.lanes};
  if (plan.n_extent < plan.lanes) lanes = {plan.n_extent};
  part.Decide("lanes", lanes, lanes[0]);
  const int64_t vectors = CeilDiv(plan.n_extent, plan.lanes);
  std::vector<int64_t> nvs, mrs;
  for (int64_t nv : {1, 2, 3, 4, 8}) {
    if (nv <= vectors) nvs.push_back(nv);
  }
  for (int64_t mr : {1, 2, 3, 4, 5, 6, 7, 8, 12, 14}) {
    if (mr <= plan.m_extent) mrs.push_back(mr);
  }
  const int registers = VectorRegisters(target);
  const bool stream = IsStream(stage, window);
  part.Decide("nv", nvs, LargestAtMost(nvs, stream ? 8 : 2));
  part.Decide("mr", mrs, stream ? 1 : LargestAtMost(mrs, registers == 32 ? 7 : 4));
  std::vector<int64_t> unrolled = {kNone};
  if (!plan.reduce.empty() && stage.reduce_axes.back()->extent <= kMaxWindow) unrolled.push_back(kInnermost);
  if (plan.reduce.size() > 1 && window <= kMaxWindow) unrolled.push_back(kAll);
  const bool inlined = !plan.pads.empty() && IsUniformAlongLanes(anatomy, plan.pad_stages);
  const int64_t innermost = unrolled[std::min<size_t>(1, unrolled.size() - 1)];
  part.Decide("window", unrolled, inlined ? innermost : unrolled.back(), false);
  part.Decide("pad", plan.pads.empty() ? std::vector<int64_t>{0} : std::vector<int64_t>{0, 1}, inlined,
              false);
  const Anatomy copy = anatomy;
  part.legal = [registers](const Values& v) { return v.at("nv") * v.at("mr") <= registers - 2; };
  part.emit = [plan, copy, target](const Values& v, TraceBuilder* b) {
    if (v.at("pad") == 0) {
      for (int s : plan.pad_stages) EmitPlainStage(copy, s, target, v.at("par") != 0, b);
    }
    Emit(plan, v, b);
  };
  return part;
}

}  // namespace mycc
