#include "tuner/space/rules/cuda/operand.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/expr/affine.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

constexpr int64_t kBulkAlignment = 16, kMaxStep = 8;

// A stage that only chooses between an element of one tensor and zero.
const ExprNode* PaddedLoad(const Stage& stage) {
  if (stage.reduce != ReduceOp::kNone) return nullptr;
  Expr value = stage.value;
  while (value->op == Op::kSelect && IsZero(value->args[2])) value = value->args[1];
  return value->op == Op::kLoad ? value.get() : nullptr;
}

// The load that the stage pads, if it is a stage of the group that does nothing else.
const ExprNode* PaddingOf(const Anatomy& anatomy, const Group& group, int stage) {
  const bool member = std::ranges::count(group.members, stage) > 0;
  return member ? PaddedLoad(anatomy.stage(stage)) : nullptr;
}

// The load that a stage of the group rounds, one element for each of its own.
const ExprNode* RoundedLoadOf(const Anatomy& anatomy, const Group& group, int stage) {
  if (stage < 0 || std::ranges::count(group.members, stage) == 0) return nullptr;
  const Expr& value = anatomy.stage(stage).value;
  const bool rounds = anatomy.stage(stage).reduce == ReduceOp::kNone && value->op == Op::kTF32;
  return rounds && value->args[0]->op == Op::kLoad ? value->args[0].get() : nullptr;
}

// The dimension along which neighbouring elements are read by the stage that makes the tensor.
int ContiguousDim(const Stage& stage, const ExprNode& load) {
  for (size_t a = 0; a < stage.axes.size(); ++a) {
    if (StrideOf(load, stage.axes[a]) == 1) return static_cast<int>(a);
  }
  return static_cast<int>(stage.axes.size()) - 1;
}

// The dimensions in their order, but the depth's last.
std::vector<int> DepthLast(int rank, int depth) {
  std::vector<int> order;
  for (int d = 0; d < rank; ++d) {
    if (d != depth) order.push_back(d);
  }
  order.push_back(depth);
  return order;
}

// The dimension along which the depth lies, in groups one behind the other.
struct DepthDim {
  int dim;
  int64_t groups = 1;
};
std::optional<DepthDim> DepthDimOf(const Operand& operand, const Var& depth) {
  if (const int dim = operand.PlainDim(depth); dim >= 0) return DepthDim{dim};
  std::optional<DepthDim> found;
  for (int d = 0; d < operand.buffer->rank(); ++d) {
    if (!UsesVar(operand.index[d], depth.get())) continue;
    const auto linear = SplitLinear(operand.index[d], depth.get());
    const bool is_group = !found && linear && linear->coefficient == 1 &&
                          operand.buffer->shape[d] % depth->extent == 0 &&
                          IsConstInt(Simplify(Mod(linear->rest, depth->extent)), int64_t{0});
    if (!is_group) return std::nullopt;
    found = DepthDim{d, operand.buffer->shape[d] / depth->extent};
  }
  return found;
}

// See TensorOperand::run.
int64_t RunOf(const ExprNode& load, const Var& depth) {
  for (int d = 0; d < load.buffer->rank(); ++d) {
    if (!UsesVar(load.args[d], depth.get())) continue;
    const auto linear = SplitLinear(load.args[d], depth.get());
    int64_t begin = 0;
    const bool at_end = linear && linear->coefficient == 1 && IsConstInt(Simplify(linear->rest), &begin) &&
                        begin + depth->extent == load.buffer->shape[d];
    if (!at_end) return depth->extent;
  }
  return 0;
}

// Whole vectors; where a window has few channels, half ones, so that less of the product is of zeros.
int64_t VectorOf(DType dtype, int64_t extent, bool window) {
  const int64_t lanes = kAccessBytes / DTypeBytes(dtype);
  return window && 2 * extent <= lanes ? lanes / 2 : lanes;
}

}  // namespace

bool IsBulk(const Expr& load, const std::vector<Var>& tiled) {
  const BufferNode& buffer = *load->buffer;
  if (buffer.rank() > 5) return false;
  for (int d = 0; d < buffer.rank(); ++d) {
    if (d + 1 < buffer.rank() && buffer.stride(d) * DTypeBytes(buffer.dtype) % kBulkAlignment != 0)
      return false;
    int steps = 0;
    for (const Var& var : tiled) {
      if (!UsesVar(load->args[d], var.get())) continue;
      const auto linear = SplitLinear(load->args[d], var.get());
      const bool last = d + 1 == buffer.rank();
      if (!linear || linear->coefficient < 1 || linear->coefficient > (last ? 1 : kMaxStep) || ++steps > 1)
        return false;
    }
  }
  return true;
}

Expr ResolvedLoad(const Anatomy& anatomy, const Group& group, const Operand& operand,
                  TensorOperand* resolved) {
  Expr load = Load(operand.buffer, operand.index);
  for (int producer = operand.producer; producer >= 0;) {
    const Stage& stage = anatomy.stage(producer);
    const ExprNode* source = PaddingOf(anatomy, group, producer);
    if (source == nullptr) break;
    VarMap axes;
    for (size_t a = 0; a < stage.axes.size(); ++a) axes[stage.axes[a].get()] = load->args[a];
    load = Substitute(Load(source->buffer, source->args), axes);
    resolved->inlined.push_back(anatomy.name(producer));
    producer = anatomy.ProducerOf(load->buffer.get());
  }
  return load;
}

void SetLoad(const Stage& stage, const Expr& load, const std::vector<int>& side, const Var& depth,
             TensorOperand* operand) {
  operand->buffer = load->buffer->name;
  operand->rank = load->args.size();
  operand->depth_contiguous = StrideOf(*load, depth) == 1;
  operand->run = RunOf(*load, depth);
  const Var& along = operand->depth_contiguous ? depth : stage.axes[side.back()];
  operand->vector_bytes =
      std::min(kAccessBytes, AlignedLanes(*load->buffer, load->args, along) * DTypeBytes(load->dtype));
  std::vector<Var> tiled = {depth};
  operand->before_depth.clear();
  for (int axis : side) {
    tiled.push_back(stage.axes[axis]);
    if (StrideOf(*load, stage.axes[axis]) > StrideOf(*load, depth)) operand->before_depth.push_back(axis);
  }
  operand->bulk = IsBulk(load, tiled) && StrideOf(*load, along) == 1;
}

bool IsRoundedByStage(const Anatomy& anatomy, const Group& group, const Operand& operand) {
  return RoundedLoadOf(anatomy, group, operand.producer) != nullptr;
}

bool CanRepack(const Operand& operand, const Var& depth) { return DepthDimOf(operand, depth).has_value(); }

Expr RepackedLoad(const Anatomy& anatomy, const Group& group, const Operand& operand, const Var& depth,
                  TensorOperand* repacked) {
  const BufferNode& from = *operand.buffer;
  Repack repack;
  const ExprNode* padding = PaddingOf(anatomy, group, operand.producer);
  const ExprNode* rounded = RoundedLoadOf(anatomy, group, operand.producer);
  const ExprNode* const of_stage = padding;
  repack.source = from.name;
  repack.of_stage = padding != nullptr || rounded != nullptr;
  repack.is_const = operand.is_const;
  while (padding != nullptr) {
    const int feeds = anatomy.ProducerOf(padding->buffer.get());
    padding = PaddingOf(anatomy, group, feeds);
    if (padding != nullptr) repacked->inlined.push_back(anatomy.name(feeds));
  }
  const DepthDim at = *DepthDimOf(operand, depth);
  repack.groups = at.groups;
  repack.order = DepthLast(from.rank(), at.dim);
  repack.along =
      rounded != nullptr ? ContiguousDim(anatomy.stage(operand.producer), *rounded) : from.rank() - 1;
  const bool in_pieces =
      of_stage != nullptr && !StrideOf(*of_stage, anatomy.stage(operand.producer).axes[at.dim]);
  repack.whole_rows = in_pieces && at.groups == 1;
  repack.lanes = VectorOf(from.dtype, depth->extent, anatomy.stage(group.anchor).reduce_axes.size() > 1);
  repack.old_extent = from.shape[at.dim] / at.groups;
  repack.extent = CeilDiv(repack.old_extent, repack.lanes) * repack.lanes;
  std::vector<int64_t> shape;
  std::vector<Expr> index;
  for (int d : repack.order) {
    shape.push_back(from.shape[d]);
    index.push_back(operand.index[d]);
  }
  shape.back() = repack.groups * repack.extent;
  if (repack.groups > 1) {
    const Expr group = FloorDiv(index.back() - VarRef(depth), repack.old_extent);
    index.back() = Simplify(group * repack.extent + VarRef(depth));
  }
  const Buffer copy = MakeBuffer(from.name, from.dtype, shape);
  repacked->repack = std::move(repack);
  return Load(copy, index);
}

std::string EmitOperand(const TensorOperand& operand, const std::string& product, TraceBuilder* b) {
  constexpr int64_t kThreads = 256;
  for (const std::string& stage : operand.inlined) b->Inline(stage);
  if (!operand.repack) return operand.buffer;
  const Repack& repack = *operand.repack;
  const std::string copy =
      repack.of_stage ? repack.source
                      : b->CacheRead(repack.source, product, "root", repack.is_const ? "packed" : "global");
  const auto loop = [&](int dim) { return absl::StrCat(copy, ".a", dim); };
  const int depth = repack.order.back(), last = static_cast<int>(repack.order.size()) - 1;
  if (repack.extent > repack.old_extent && repack.groups == 1) {
    b->Pad(copy, depth, repack.extent);
  } else if (repack.extent > repack.old_extent) {
    b->PadGroups(copy, depth, repack.old_extent, repack.extent);
  }
  if (depth != last) {
    std::vector<std::string> layout;
    for (int d : repack.order) layout.push_back(absl::StrCat(d));
    b->Pack(copy, layout);
  }
  // A thread writes a vector of the copy; its neighbours read the adjacent source elements.
  const std::string row = loop(depth);
  b->Split(row, {repack.lanes});
  std::vector<std::string> order;
  for (int d = 0; d <= last; ++d) {
    if (d != depth && d != repack.along) order.push_back(loop(d));
  }
  if (!repack.whole_rows) order.push_back(SubLoop(row, 0));
  if (depth != repack.along) order.push_back(loop(repack.along));
  const std::vector<std::string> places = order;
  if (repack.whole_rows) order.push_back(SubLoop(row, 0));
  order.push_back(SubLoop(row, 1));
  b->Reorder(order);
  const std::string flat = b->Fuse(places);
  b->Split(flat, {kThreads});
  b->Bind(SubLoop(flat, 0), "block");
  b->Bind(SubLoop(flat, 1), "thread");
  if (repack.whole_rows) b->Bind(SubLoop(row, 0), "unroll");
  b->Bind(SubLoop(row, 1), "vector");
  return copy;
}

}  // namespace mycc
