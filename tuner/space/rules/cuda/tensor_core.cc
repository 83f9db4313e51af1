#include "tuner/space/rules/cuda/tensor_core.h"

#include <algorithm>

#include "codegen/expr/affine.h"

namespace mycc {
namespace {

constexpr int64_t kBulkAlignment = 16, kMaxStep = 8;

// A stage that only chooses between an element of one tensor and zero.
const ExprNode* PaddedLoad(const Stage& stage) {
  const Expr& value = stage.value;
  if (stage.reduce != ReduceOp::kNone) return nullptr;
  if (value->op == Op::kLoad) return value.get();
  const bool is_padding = value->op == Op::kSelect && value->args[1]->op == Op::kLoad &&
                          value->args[2]->op == Op::kConst && value->args[2]->value.f == 0 &&
                          value->args[2]->value.i == 0;
  return is_padding ? value->args[1].get() : nullptr;
}

// The load of an operand after the stages that pad it are inlined.
Expr ResolvedLoad(const Anatomy& anatomy, const Group& group, const Operand& operand,
                  std::vector<std::string>* inlined) {
  Expr load = Load(operand.buffer, operand.index);
  for (int producer = operand.producer; producer >= 0;) {
    const bool member = std::count(group.members.begin(), group.members.end(), producer) > 0;
    const Stage& stage = anatomy.stage(producer);
    const ExprNode* source = member ? PaddedLoad(stage) : nullptr;
    if (source == nullptr) break;
    VarMap axes;
    for (size_t a = 0; a < stage.axes.size(); ++a) axes[stage.axes[a].get()] = load->args[a];
    load = Substitute(Load(source->buffer, source->args), axes);
    inlined->push_back(anatomy.name(producer));
    producer = anatomy.ProducerOf(load->buffer.get());
  }
  return load;
}

// Every index steps evenly with one tiled axis at most, and rows are aligned.
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

bool IsDataDependent(const Expr& load) {
  for (const Expr& index : load->args) {
    if (!RangeOf(index)) return true;
  }
  return false;
}

}  // namespace

AxisTile BestAxisTile(const std::vector<int64_t>& extents, int64_t size) {
  AxisTile best, tile(extents.size(), 1);
  double best_work = 0;
  const auto choose = [&](size_t axis, int64_t left, const auto& self) -> void {
    if (axis == 0) {
      tile[0] = left;
      double work = 1;
      for (size_t a = 0; a < extents.size(); ++a) {
        const int64_t tiles = (extents[a] + tile[a] - 1) / tile[a];
        work *= static_cast<double>(tiles * tile[a]);
      }
      if (best.empty() || work < best_work) {
        best = tile;
        best_work = work;
      }
      return;
    }
    // Larger inner tiles first, so that they win between equals.
    for (int64_t t = std::min(left, PowerAtLeast(extents[axis])); t >= 1; t /= 2) {
      tile[axis] = t;
      self(axis - 1, left / t, self);
    }
  };
  if (extents.empty()) return {};
  // The odd factor of the size (192 is 3 * 64) stays with the first axis.
  choose(extents.size() - 1, size, choose);
  return best;
}

int64_t TilesOf(const std::vector<int64_t>& extents, const AxisTile& tile) {
  int64_t tiles = 1;
  for (size_t a = 0; a < extents.size(); ++a) tiles *= (extents[a] + tile[a] - 1) / tile[a];
  return tiles;
}

std::vector<int64_t> TensorContraction::Extents(const Anatomy& anatomy, const std::vector<int>& axes) const {
  std::vector<int64_t> extents;
  extents.reserve(axes.size());
  for (int a : axes) extents.push_back(anatomy.stage(stage).axes[a]->extent);
  return extents;
}

std::optional<Instruction> TensorInstruction(const TensorContraction& t, DType accumulator,
                                             InstructionClass kind, const Target& target) {
  for (const Instruction& row : InstructionsOf(target)) {
    if (row.kind == kind && row.operand == t.a.dtype && row.accumulator == accumulator &&
        row.tf32 == t.a.tf32)
      return row;
  }
  return std::nullopt;
}

std::optional<TensorContraction> FindTensorContraction(const Anatomy& anatomy, const Group& group) {
  const int s = group.anchor;
  const Stage& stage = anatomy.stage(s);
  const std::optional<Contraction>& c = anatomy.info(s).contraction;
  if (!c || c->rows.empty() || c->cols.empty() || stage.reduce_axes.empty()) return std::nullopt;
  if (c->scalar.is_tf32 != c->vector.is_tf32) return std::nullopt;
  TensorContraction t;
  t.stage = s;
  t.rows = c->rows;
  t.cols = c->cols;
  t.batch = c->batch;
  const Expr a = ResolvedLoad(anatomy, group, c->scalar, &t.a.inlined),
             b = ResolvedLoad(anatomy, group, c->vector, &t.b.inlined);
  if (a->dtype != b->dtype || IsDataDependent(a) || IsDataDependent(b)) return std::nullopt;
  t.a.source = c->scalar.producer;
  t.b.source = c->vector.producer;
  t.a.buffer = a->buffer->name;
  t.b.buffer = b->buffer->name;
  t.a.shape = a->buffer->shape;
  t.b.shape = b->buffer->shape;
  t.a.dtype = t.b.dtype = a->dtype;
  t.a.tf32 = t.b.tf32 = c->scalar.is_tf32;
  // The tiled reduction axis: contiguous in an operand, the longest of such.
  int tiled = -1;
  for (int r = 0; r < static_cast<int>(stage.reduce_axes.size()); ++r) {
    const Var& axis = stage.reduce_axes[r];
    const bool contiguous = StrideOf(*a, axis) == 1 || StrideOf(*b, axis) == 1;
    if (contiguous && (tiled < 0 || axis->extent > stage.reduce_axes[tiled]->extent)) tiled = r;
  }
  if (tiled < 0) tiled = static_cast<int>(stage.reduce_axes.size()) - 1;
  for (int r = 0; r < static_cast<int>(stage.reduce_axes.size()); ++r) {
    if (r != tiled) t.depth.push_back(r);
  }
  t.depth.push_back(tiled);
  const Var& depth = stage.reduce_axes[tiled];
  t.a.depth_contiguous = StrideOf(*a, depth) == 1;
  t.b.depth_contiguous = StrideOf(*b, depth) == 1;
  const auto tiled_axes = [&](const std::vector<int>& axes) {
    std::vector<Var> vars = {depth};
    for (int axis : axes) vars.push_back(stage.axes[axis]);
    return vars;
  };
  const auto contiguous_somewhere = [&](const Expr& load, bool along_depth, int last_axis) {
    return along_depth || StrideOf(*load, stage.axes[last_axis]) == 1;
  };
  t.a.bulk = IsBulk(a, tiled_axes(t.rows)) && contiguous_somewhere(a, t.a.depth_contiguous, t.rows.back());
  t.b.bulk = IsBulk(b, tiled_axes(t.cols)) && contiguous_somewhere(b, t.b.depth_contiguous, t.cols.back());
  for (int member : group.members) {
    if (member > s) t.epilogue.push_back(member);
  }
  const Stage& last = anatomy.stage(t.epilogue.empty() ? s : t.epilogue.back());
  t.output = last.output->dtype;
  const Expr out = Load(last.output, [&] {
    std::vector<Expr> indices;
    for (const Var& axis : last.axes) indices.push_back(VarRef(axis));
    return indices;
  }());
  t.bulk_store = IsBulk(out, last.axes);
  return t;
}

}  // namespace mycc
