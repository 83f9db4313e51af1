// The CPU rule for convolutions of 3 x 3 windows by Winograd's F(m x m, 3 x 3):
//
//   the image with its channels last                (where they are not: NCHW)
//   filters u, in panels of nr                      (ahead of time where they are const)
//   parallel tiles, channel vectors:                v = B^T d B: unrolled, in registers
//   the product by the contraction rule, n * n matrices at once
//   parallel tiles, filter vectors:                 y = epilogue(A^T M A)
//
// Alternatively one parallel loop over blocks of tile rows does all three, so that v and M stay in L2. After
// Lavin and Gray (2016).
#include "codegen/workload/winograd.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tuner/space/cpu_products.h"
#include "tuner/space/part.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

// How the stage that pads the image is provided.
enum PadHow : int64_t { kAtRoot = 0, kInlined = 1 };

constexpr char kProduct[] = "m.";  // before the names of the product's decisions

struct Plan {
  const Anatomy anatomy;  // of the workload without Winograd's stages
  Group group;
  WinogradShape shape;
  int64_t m;
  int lanes;                            // of the product
  int64_t channel_lanes, filter_lanes;  // of the transforms, along the axes that lie together
  bool is_turned = false;               // columns lie together in the image, not channels
  std::string t;                        // the convolution
  std::vector<int> pads, others;        // stages before it: of the image, of the filters
  std::vector<int> epilogue;
  int64_t tile_columns = 1, tile_rows = 1;
  Part product;

  const Stage& conv() const { return anatomy.stage(group.anchor); }
  int last() const { return epilogue.empty() ? group.anchor : epilogue.back(); }
  std::string OutLoop(int axis) const { return anatomy.Loop(last(), axis); }
};

// The second half `to` of a transform, and before it the stages that it alone reads: for each index along
// dimension 2 and each vector along the last one, straight code.
void EmitTransform(const std::string& to, const std::vector<std::string>& before, int64_t lanes,
                   bool parallel, TraceBuilder* b) {
  const auto axis = [](const std::string& block, int a) { return absl::StrCat(block, ".a", a); };
  const std::string vectors = axis(to, 3), each = axis(to, 2);
  b->Split(vectors, {lanes});
  b->Reorder({each, SubLoop(vectors, 0), axis(to, 0), axis(to, 1), SubLoop(vectors, 1)});
  if (parallel) b->BindAll({each, SubLoop(vectors, 0)}, "parallel");
  for (const std::string& block : before) {
    b->ComputeAt(block, SubLoop(vectors, 0));
    b->BindAll({axis(block, 0), axis(block, 1)}, "unroll");
    b->Bind(axis(block, 3), "vector");
  }
  b->BindAll({axis(to, 0), axis(to, 1)}, "unroll");
  b->Bind(SubLoop(vectors, 1), "vector");
}

// The nest over output tiles; where there are blocks, the loop of one.
std::string EmitOutput(const Plan& plan, int64_t block, bool parallel, TraceBuilder* b) {
  std::vector<int> stages = {plan.group.anchor};
  stages.insert(stages.end(), plan.epilogue.begin(), plan.epilogue.end());
  for (size_t s = 0; s + 1 < stages.size(); ++s) b->Inline(plan.anatomy.name(stages[s]));
  const std::string rows = plan.OutLoop(plan.shape.rows), columns = plan.OutLoop(plan.shape.columns),
                    filters = plan.OutLoop(plan.shape.filters.back());
  std::vector<std::string> order, inner;
  for (const int axis : plan.shape.batch) order.push_back(plan.OutLoop(axis));
  order.push_back(SubLoop(rows, 0));
  if (block > 0) {
    b->Split(rows, {block, plan.m});
    inner = {SubLoop(rows, 1)};
  } else {
    b->Split(rows, {plan.m});
  }
  b->Split(columns, {plan.m});
  b->Split(filters, {plan.filter_lanes});
  inner.push_back(SubLoop(columns, 0));
  for (size_t f = 0; f + 1 < plan.shape.filters.size(); ++f)
    inner.push_back(plan.OutLoop(plan.shape.filters[f]));
  inner.push_back(SubLoop(filters, 0));
  const std::string tile_row = SubLoop(rows, block > 0 ? 2 : 1), tile_column = SubLoop(columns, 1),
                    vector = SubLoop(filters, 1);
  std::vector<std::string> all = order;
  all.insert(all.end(), inner.begin(), inner.end());
  all.insert(all.end(), {tile_row, tile_column, vector});
  b->Reorder(all);
  if (block == 0) order.insert(order.end(), inner.begin(), inner.end());
  if (parallel) b->BindAll(order, "parallel");
  const std::string z = plan.t + kWinogradRows;
  b->ComputeAt(z, SubLoop(filters, 0));
  b->BindAll({z + ".a0", z + ".a1", tile_row, tile_column}, "unroll");
  b->BindAll({z + ".a3", vector}, "vector");
  return order.back();
}

Values ProductValues(const Values& v, bool in_block) {
  Values values;
  for (const auto& [name, value] : v) {
    if (name.starts_with(kProduct)) values.Add(name.substr(sizeof kProduct - 1), value);
  }
  values.Add("pack_b", 0);  // u has its panels already; no decision of ours
  if (in_block) values["par"] = 0;
  return values;
}

// The read of the image as it comes to the convolution: the one stage that pads it, or its own factor.
const ExprNode& SourceOf(const Plan& plan) {
  if (plan.pads.empty()) return *ImageOf(plan.conv(), plan.shape);
  return *LoadsOf(plan.anatomy.stage(plan.pads.front()).value).front();
}

// The dimension of SourceOf that the channels run along; -1: none alone.
int ChannelDim(const Plan& plan) {
  const auto along = [](const ExprNode& load, const Var& axis) {
    int found = -1;
    for (int d = 0; d < static_cast<int>(load.args.size()); ++d) {
      if (load.args[d]->op == Op::kVar && load.args[d]->var == axis) found = d;
    }
    return found;
  };
  const int dim =
      along(*ImageOf(plan.conv(), plan.shape), plan.conv().reduce_axes[plan.shape.channels.back()]);
  if (plan.pads.empty() || dim < 0) return dim;
  return along(SourceOf(plan), plan.anatomy.stage(plan.pads.front()).axes[dim]);
}

// A copy of the image with its channels last, in squares that are transposed in registers.
void EmitTurnedImage(const Plan& plan, bool parallel, TraceBuilder* b) {
  const Buffer& image = SourceOf(plan).buffer;
  const int channels = ChannelDim(plan), last = image->rank() - 1;
  const std::string copy = b->CacheRead(
      image->name, plan.pads.empty() ? plan.t + kWinogradWindow : plan.anatomy.name(plan.pads.front()),
      "root", "local");
  std::vector<std::string> layout, order;
  for (int d = 0; d <= last; ++d) {
    if (d == channels) continue;
    layout.push_back(absl::StrCat(d));
    if (d != last) order.push_back(absl::StrCat(copy, ".a", d));
  }
  layout.push_back(absl::StrCat(channels));
  b->Pack(copy, layout);
  const std::string across = absl::StrCat(copy, ".a", channels), along = absl::StrCat(copy, ".a", last);
  b->Split(across, {plan.channel_lanes});
  b->Split(along, {plan.channel_lanes});
  order.insert(order.end(), {SubLoop(across, 0), SubLoop(along, 0)});
  const std::vector<std::string> squares = order;
  order.insert(order.end(), {SubLoop(along, 1), SubLoop(across, 1)});
  b->Reorder(order);
  if (parallel) b->BindAll(squares, "parallel");
  b->Bind(SubLoop(along, 1), "unroll");
  b->Bind(SubLoop(across, 1), "vector");
}

void Emit(const Plan& plan, const Target& target, const Values& v, TraceBuilder* b) {
  const std::string& t = plan.t;
  const int64_t block = v.at("block");
  const bool parallel = v.at("par") != 0;
  b->Winograd(t, plan.m);
  if (plan.is_turned) EmitTurnedImage(plan, parallel, b);
  for (auto pad = plan.pads.rbegin(); pad != plan.pads.rend(); ++pad) {
    if (v.at("pad") == kInlined) {
      b->Inline(plan.anatomy.name(*pad));
    } else {
      EmitPlainStage(plan.anatomy, *pad, target, parallel, b);
    }
  }
  for (const int other : plan.others) EmitPlainStage(plan.anatomy, other, target, parallel, b);
  const std::string u = t + kWinogradFilter, product = t + kWinogradProduct, input = t + kWinogradInput;
  EmitTransform(u, {t + kWinogradFilterRows}, plan.lanes, parallel, b);
  const int64_t nr = v.at(absl::StrCat(kProduct, "nv")) * plan.lanes;
  b->Pack(u, {"0", "1", absl::StrCat("3/", nr), "2", absl::StrCat("3%", nr)});
  const std::string block_loop = EmitOutput(plan, block, parallel, b);
  if (block > 0) {
    b->ComputeAt(product, block_loop);
    b->ComputeAt(input, block_loop);
  }
  EmitTransform(input, {t + kWinogradWindowRows, t + kWinogradWindow}, plan.channel_lanes,
                parallel && block == 0, b);
  plan.product.emit(ProductValues(v, block > 0), b);
}

// The stages in the place of the convolution, for the contraction rule.
Anatomy WithStages(const Anatomy& anatomy, int conv, const WinogradShape& shape, int64_t m) {
  Workload workload = anatomy.workload();
  const std::vector<Stage> stages = WinogradStages(workload.stages[conv], shape, static_cast<int>(m));
  workload.stages.erase(workload.stages.begin() + conv);
  workload.stages.insert(workload.stages.begin() + conv, stages.begin(), stages.end());
  return Anatomy(workload);
}

// Multiplications of the direct sum for each that is left, whole tiles counted.
double Saved(const Stage& conv, const WinogradShape& shape, int64_t m) {
  const int64_t rows = conv.axes[shape.rows]->extent, columns = conv.axes[shape.columns]->extent, n = m + 2;
  return static_cast<double>(9 * rows * columns) /
         static_cast<double>(CeilDiv(rows, m) * CeilDiv(columns, m) * n * n);
}

// How much more of the direct sum the best instruction for its operands' types does in a cycle than one of
// f32, which is what the transforms make of them.
double Lead(const Anatomy& anatomy, const Group& group, const Target& target) {
  constexpr double kOfSingle = 2;  // products in a cycle, in each lane
  const std::vector<CpuProduct> products =
      CpuProductsOf(*anatomy.info(group.anchor).contraction, anatomy.product(group.anchor), target);
  if (products.empty()) return 1;
  const Instruction& best = products.front().instruction;
  return best.m * best.k / best.cycles / kOfSingle;
}

// There are enough channels and filters for the product to outweigh the transforms.
bool MayPay(const Stage& conv, const WinogradShape& shape, int64_t m, double lead) {
  constexpr double kFewestSaved = 1.3;
  constexpr int64_t kFewest = 32;
  return conv.value->dtype == DType::kF32 && shape.Channels(conv) >= kFewest &&
         shape.Filters(conv) >= kFewest && Saved(conv, shape, m) >= kFewestSaved * std::max(lead, 1.0);
}

// Vectors along the last of these axes; where there are others, such that none reaches past its end. 0: not.
int64_t LanesAlong(const std::vector<int>& which, const std::vector<Var>& axes, int64_t lanes) {
  const int64_t extent = axes[which.back()]->extent;
  if (which.size() == 1) return lanes;
  return extent >= lanes ? (extent % lanes == 0 ? lanes : 0) : extent;
}

// Channels lie together in the image, and filters in the output; or columns do in both, and the image is
// copied.
bool FindLanes(Plan* plan) {
  const Stage& conv = plan->conv();
  const WinogradShape& shape = plan->shape;
  const ExprNode& image = *ImageOf(conv, shape);
  const int last = static_cast<int>(conv.axes.size()) - 1;
  plan->channel_lanes = LanesAlong(shape.channels, conv.reduce_axes, plan->lanes);
  plan->filter_lanes = LanesAlong(shape.filters, conv.axes, plan->lanes);
  if (shape.filters.back() == last && StrideOf(image, conv.reduce_axes[shape.channels.back()]) == 1)
    return plan->channel_lanes > 1 && plan->filter_lanes > 1;
  plan->is_turned = true;
  return shape.columns == last && shape.filters.size() == 1 && shape.channels.size() == 1 &&
         StrideOf(image, conv.axes[last]) == 1 && plan->pads.size() <= 1 &&
         (plan->pads.empty() || LoadsOf(plan->anatomy.stage(plan->pads.front()).value).size() == 1) &&
         ChannelDim(*plan) >= 0;
}

// Rows of tiles whose v and M fit into half of L2; 0, all at the root, where that moves less: v and M pass by
// twice, instead of the filters once for each block.
int64_t BestRows(const Plan& plan, const Target& target) {
  const Stage& conv = plan.conv();
  const int64_t channels = plan.shape.Channels(conv), filters = plan.shape.Filters(conv),
                elements = (plan.m + 2) * (plan.m + 2) * DTypeBytes(conv.value->dtype),
                u = elements * channels * filters, row = elements * plan.tile_columns * (channels + filters);
  const int64_t images = PointsOf(conv.axes, plan.shape.batch);
  if (row * plan.tile_rows * images <= target.l2_bytes * target.threads) return 0;
  const int64_t fewest = CeilDiv(plan.product.Default("mr"), plan.tile_columns);
  const int64_t rows = std::clamp<int64_t>(target.l2_bytes / 2 / row, fewest, plan.tile_rows);
  const bool stays = u <= target.l2_bytes / 2;
  const int64_t blocks = CeilDiv(plan.tile_rows, rows) * images;
  return stays || blocks * u < 2 * row * plan.tile_rows * images ? rows : 0;
}

// Tiles overlap, so inlined stages are computed several times: conditions of padding may be, functions not.
bool PadsAreCheap(const Plan& plan) {
  constexpr double kMostOps = 12;
  return std::ranges::all_of(plan.pads,
                             [&](int pad) { return plan.anatomy.info(pad).ops_per_element <= kMostOps; });
}

Part MakePart(const Plan& plan, const Target& target) {
  Part part;
  part.prefix = absl::StrCat(plan.t, ".");
  part.rule = absl::StrCat("winograd", plan.m);
  const bool pays = PaysForThreads(plan.anatomy, plan.group, target);
  part.Decide("par", target.threads > 1 ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0}, pays, false);
  std::vector<int64_t> blocks = {0};
  for (int64_t rows = 1; rows <= plan.tile_rows; rows = rows < 4 ? rows + 1 : rows * 3 / 2)
    blocks.push_back(rows);
  const int64_t best_block = BestRows(plan, target);
  part.Decide("block", blocks, best_block, false);
  std::vector<int64_t> pads = {kAtRoot, kInlined};
  if (plan.pads.empty()) pads = {kAtRoot};
  if (plan.is_turned) pads = {kInlined};
  part.Decide("pad", pads, plan.is_turned || PadsAreCheap(plan) ? kInlined : kAtRoot, false);
  for (size_t d = 0; d < plan.product.decisions.size(); ++d) {
    const Decision& decision = plan.product.decisions[d];
    if (decision.name == "pack_b") continue;
    const int64_t preferred = best_block > 0 && decision.name == "pack_a" ? 0 : plan.product.defaults[d];
    part.Decide(kProduct + decision.name, decision.choices, preferred, decision.ordered);
  }
  part.legal = [plan](const Values& v) {
    const int64_t block = v.at("block");
    const Values product = ProductValues(v, block > 0);
    if (block > 0 && product.at("mr") > block * plan.tile_columns) return false;
    // Panels copy whole blocks, and the last one would not be whole.
    if (block > 0 && plan.tile_rows % block != 0 && product.at("pack_a") != 0) return false;
    return plan.product.legal(product);
  };
  part.emit = [plan, target](const Values& v, TraceBuilder* b) { Emit(plan, target, v, b); };
  return part;
}

}  // namespace

std::vector<Part> WinogradParts(const Anatomy& anatomy, const Group& group, const Target& target) {
  const Stage& conv = anatomy.stage(group.anchor);
  const absl::StatusOr<WinogradShape> shape = WinogradShapeOf(conv);
  std::vector<Part> parts;
  if (!shape.ok() || target.direct_sums) return parts;
  const Buffer& filter = FilterOf(conv, *shape);
  const double lead = Lead(anatomy, group, target);
  for (const int64_t m : {4, 2}) {
    const int lanes = VectorBytes(target) / DTypeBytes(conv.value->dtype);
    if (!MayPay(conv, *shape, m, lead)) continue;
    Plan plan{.anatomy = anatomy,
              .group = group,
              .shape = *shape,
              .m = m,
              .lanes = lanes,
              .t = anatomy.name(group.anchor)};
    for (const int s : group.members) {
      if (s > group.anchor) plan.epilogue.push_back(s);
      if (s < group.anchor) (anatomy.stage(s).output == filter ? plan.others : plan.pads).push_back(s);
    }
    if (!FindLanes(&plan)) continue;
    plan.tile_rows = CeilDiv(conv.axes[shape->rows]->extent, m);
    plan.tile_columns = CeilDiv(conv.axes[shape->columns]->extent, m);
    const Anatomy stages = WithStages(anatomy, group.anchor, *shape, m);
    for (int s = 0; s < stages.num_stages(); ++s) {
      if (stages.name(s) == plan.t + kWinogradProduct)
        plan.product = ContractionParts(stages, Group{s, {s}}, target).front();
    }
    parts.push_back(MakePart(plan, target));
  }
  return parts;
}

}  // namespace mycc
