#include "tuner/space/rules/cuda/tensor_core.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/expr/affine.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

bool IsDataDependent(const Expr& load) { return std::ranges::any_of(load->args, HasLoad); }

}  // namespace

AxisTile BestAxisTile(const std::vector<int64_t>& extents, int64_t size) {
  const auto work = [&](const AxisTile& tile) -> std::optional<double> {
    double places = 1;
    for (size_t a = 0; a < extents.size(); ++a)
      places *= static_cast<double>(CeilDiv(extents[a], tile[a]) * tile[a]);
    return places;
  };
  std::vector<int64_t> question = {size};
  question.insert(question.end(), extents.begin(), extents.end());
  return RememberedTile(question, [&] { return CheapestTile(extents, size, work); });
}

std::string LoopOf(const std::string& block, const Var& axis) { return absl::StrCat(block, ".", axis->name); }

TiledLoops SplitAxes(const Stage& product, const std::string& block, const std::vector<int>& axes,
                     const AxisTile& tile, TraceBuilder* b) {
  TiledLoops loops;
  for (size_t i = 0; i < axes.size(); ++i) {
    const std::string loop = LoopOf(block, product.axes[axes[i]]);
    b->Split(loop, {tile[i]});
    loops.outer.push_back(SubLoop(loop, 0));
    loops.inner.push_back(SubLoop(loop, 1));
  }
  return loops;
}

void Append(std::vector<std::string>* to, const std::vector<std::string>& more) {
  to->insert(to->end(), more.begin(), more.end());
}

std::vector<int64_t> TensorContraction::Extents(const Anatomy& anatomy, const std::vector<int>& axes) const {
  std::vector<int64_t> extents;
  extents.reserve(axes.size());
  for (int a : axes) extents.push_back(anatomy.product(stage).axes[a]->extent);
  return extents;
}

std::optional<Instruction> TensorInstruction(const TensorContraction& t, DType accumulator,
                                             InstructionClass kind, const Target& target) {
  for (const Instruction* row : InstructionsOf(target)) {
    // A warp's instruction rounds its operands itself.
    const bool rounds = kind == InstructionClass::kWarp ? t.a.tf32 : t.a.rounded;
    if (row->kind == kind && row->operand == t.a.dtype && row->accumulator == accumulator &&
        row->tf32 == rounds)
      return *row;
  }
  return std::nullopt;
}

namespace {

// The places of the sides' tiles in memory.
struct Loads {
  Expr a, b;
};

// The product's axes and types; the operands follow.
std::optional<TensorContraction> Skeleton(const Anatomy& anatomy, const Group& group) {
  const int s = group.anchor;
  const Stage& stage = anatomy.product(s);
  const std::optional<Contraction>& c = anatomy.info(s).contraction;
  if (!c || c->rows.empty() || c->cols.empty() || stage.reduce_axes.empty()) return std::nullopt;
  if (c->scalar.is_tf32 != c->vector.is_tf32 || c->scalar.buffer->dtype != c->vector.buffer->dtype)
    return std::nullopt;
  TensorContraction t;
  t.stage = s;
  t.rows = c->rows;
  t.cols = c->cols;
  t.batch = c->batch;
  t.a.dtype = t.b.dtype = c->scalar.buffer->dtype;
  t.a.tf32 = t.b.tf32 = c->scalar.is_tf32;
  t.a.rounded = t.b.rounded =
      IsRoundedByStage(anatomy, group, c->scalar) && IsRoundedByStage(anatomy, group, c->vector);
  t.one_tensor = c->OfOneTensor();
  for (int member : group.members) {
    if (member > s) t.epilogue.push_back(member);
  }
  const Stage& last = anatomy.stage(t.epilogue.empty() ? s : t.epilogue.back());
  t.output = last.output->dtype;
  std::vector<Expr> indices;
  for (const Var& axis : last.axes) indices.push_back(VarRef(axis));
  t.bulk_store = IsBulk(Load(last.output, indices), last.axes);
  return t;
}

void SetDepth(const Stage& stage, int tiled, TensorContraction* t) {
  for (int r = 0; r < static_cast<int>(stage.reduce_axes.size()); ++r) {
    if (r != tiled) t->depth.push_back(r);
  }
  t->depth.push_back(tiled);
}

// Whether the product pads what it reads. A copy has its padding.
bool IsPadded(const TensorOperand& operand) { return !operand.repack && !operand.inlined.empty(); }

void SetLoads(const Stage& stage, const Loads& loads, TensorContraction* t) {
  const Var& depth = stage.reduce_axes[t->depth.back()];
  SetLoad(stage, loads.a, t->rows, depth, &t->a);
  SetLoad(stage, loads.b, t->cols, depth, &t->b);
  t->window = FindTapWindow(stage, loads.a, loads.b, t->rows, t->depth.back(), IsPadded(t->a));
}

void FindNearBatches(const Stage& stage, const Loads& loads, TensorContraction* t) {
  constexpr int64_t kLineBytes = 128;
  for (const int axis : t->batch) {
    const auto shares = [&](const Expr& load) {
      const std::optional<int64_t> stride = StrideOf(*load, stage.axes[axis]);
      return stride && *stride > 0 && *stride * DTypeBytes(load->dtype) < kLineBytes;
    };
    if (stage.axes[axis]->extent > 1 && (shares(loads.a) || shares(loads.b))) t->near.push_back(axis);
  }
}

// The first factor of a product of a tensor by itself is staged first (stage_shared).
void OrderTiles(const Contraction& c, TensorContraction* t) {
  if (t->a.buffer == t->b.buffer) (c.scalar.is_first ? t->b : t->a).second = true;
}

// Both operands are read from one copy.
bool HasOneCopy(const TensorContraction& t) {
  return t.a.repack && t.b.repack && t.a.repack->order == t.b.repack->order &&
         t.a.repack->extent == t.b.repack->extent;
}

// The reduction axis along which an operand is contiguous, the longest of such.
int ContiguousDepth(const Stage& stage, const Loads& loads) {
  int tiled = -1;
  for (int r = 0; r < static_cast<int>(stage.reduce_axes.size()); ++r) {
    const Var& axis = stage.reduce_axes[r];
    const bool contiguous = StrideOf(*loads.a, axis) == 1 || StrideOf(*loads.b, axis) == 1;
    if (contiguous && (tiled < 0 || axis->extent > stage.reduce_axes[tiled]->extent)) tiled = r;
  }
  return tiled < 0 ? static_cast<int>(stage.reduce_axes.size()) - 1 : tiled;
}

std::optional<TensorContraction> FindDirect(const Anatomy& anatomy, const Group& group) {
  std::optional<TensorContraction> t = Skeleton(anatomy, group);
  if (!t) return std::nullopt;
  const Contraction& c = *anatomy.info(t->stage).contraction;
  const Stage& stage = anatomy.product(t->stage);
  const Loads loads = {ResolvedLoad(anatomy, group, c.scalar, &t->a),
                       ResolvedLoad(anatomy, group, c.vector, &t->b)};
  if (IsDataDependent(loads.a) || IsDataDependent(loads.b)) return std::nullopt;
  SetDepth(stage, ContiguousDepth(stage, loads), &*t);
  SetLoads(stage, loads, &*t);
  FindNearBatches(stage, loads, &*t);
  OrderTiles(c, &*t);
  return t;
}

// REQUIRES: the product has a direct form.
std::optional<TensorContraction> FindRepacked(const Anatomy& anatomy, const Group& group) {
  const Contraction& c = *anatomy.info(group.anchor).contraction;
  const Stage& stage = anatomy.product(group.anchor);
  // The longest axis that both copies can have last.
  int tiled = -1;
  for (int r = 0; r < static_cast<int>(stage.reduce_axes.size()); ++r) {
    const Var& axis = stage.reduce_axes[r];
    const bool longer = tiled < 0 || axis->extent > stage.reduce_axes[tiled]->extent;
    if (longer && CanRepack(c.scalar, axis) && CanRepack(c.vector, axis)) tiled = r;
  }
  if (tiled < 0) return std::nullopt;
  std::optional<TensorContraction> t = Skeleton(anatomy, group);
  SetDepth(stage, tiled, &*t);
  const Var& depth = stage.reduce_axes[tiled];
  const auto arrive = [&](const Operand& operand, const std::vector<int>& side, TensorOperand* arriving) {
    Expr load = ResolvedLoad(anatomy, group, operand, arriving);
    SetLoad(stage, load, side, depth, arriving);
    if (arriving->depth_contiguous && arriving->vector_bytes == kAccessBytes && !arriving->rounded)
      return load;
    arriving->inlined.clear();
    load = RepackedLoad(anatomy, group, operand, depth, arriving);
    SetLoad(stage, load, side, depth, arriving);
    // The copy's own zeros end a group's run.
    const Repack& repack = *arriving->repack;
    if (repack.old_extent == depth->extent) arriving->run = repack.groups == 1 ? 0 : repack.extent;
    return load;
  };
  const Expr a = arrive(c.scalar, t->rows, &t->a), b = arrive(c.vector, t->cols, &t->b);
  if (!t->a.repack && !t->b.repack) return std::nullopt;
  if (t->one_tensor && !HasOneCopy(*t)) return std::nullopt;
  t->window = FindTapWindow(stage, a, b, t->rows, tiled, IsPadded(t->a));
  FindNearBatches(stage, {a, b}, &*t);
  OrderTiles(c, &*t);
  return t;
}

}  // namespace

bool HasNearBatches(const TensorForms& forms) {
  return !forms.direct.near.empty() || (forms.repacked && !forms.repacked->near.empty());
}

std::vector<std::string> BatchLoops(const Anatomy& anatomy, const TensorContraction& t,
                                    const std::string& product, const Values& v, bool innermost) {
  const bool near = v.contains("near") && v.at("near") != 0;
  std::vector<std::string> loops;
  for (const int axis : t.batch) {
    const bool inside = near && std::ranges::count(t.near, axis) > 0;
    if (inside == innermost) loops.push_back(LoopOf(product, anatomy.product(t.stage).axes[axis]));
  }
  return loops;
}

std::vector<std::string> TileOrder(const TensorOperand& a, const TensorOperand& b,
                                   const std::vector<std::string>& rows, const std::vector<std::string>& cols,
                                   const std::vector<std::string>& depth) {
  std::vector<std::string> order;
  if (!a.depth_contiguous) Append(&order, depth);
  Append(&order, rows);
  if (a.depth_contiguous && !b.depth_contiguous) Append(&order, depth);
  Append(&order, cols);
  if (a.depth_contiguous && b.depth_contiguous) Append(&order, depth);
  return order;
}

void EmitEpilogue(const Anatomy& anatomy, const TensorContraction& t, TraceBuilder* b) {
  for (size_t i = 0; i + 1 < t.epilogue.size(); ++i) b->Inline(anatomy.name(t.epilogue[i]));
  if (!t.epilogue.empty()) b->ReverseInline(anatomy.name(t.epilogue.back()));
}

StagedBuffers EmitOperands(const TensorContraction& t, const std::string& product, TraceBuilder* b) {
  const std::string a = EmitOperand(t.a, product, b);
  return {a, t.one_tensor ? a : EmitOperand(t.b, product, b)};
}

StagedBuffers StageOperands(const TensorContraction& t, const StagedBuffers& buffers, const std::string& work,
                            const StagingLoops& loops, TraceBuilder* b) {
  StagedBuffers tiles = {b->NextTile(buffers.a, t.a.second ? 1 : 0),
                         b->NextTile(buffers.b, t.b.second ? 1 : 0)};
  if (loops.taps.empty()) {
    b->StageShared(work, buffers.a, loops.a, "shared");
  } else {
    b->StageWindow(work, buffers.a, loops.a, "shared", loops.taps);
  }
  b->StageShared(work, buffers.b, loops.b, "shared");
  return tiles;
}

std::optional<TensorForms> FindTensorForms(const Anatomy& anatomy, const Group& group) {
  const std::optional<TensorContraction> direct = FindDirect(anatomy, group);
  if (!direct) return std::nullopt;
  return TensorForms{*direct, FindRepacked(anatomy, group)};
}

std::vector<int64_t> TensorPlan::Rows(bool swap) const {
  return forms.direct.Extents(anatomy, swap ? forms.direct.cols : forms.direct.rows);
}

std::vector<int64_t> TensorPlan::Cols(bool swap) const { return Rows(!swap); }

int64_t TensorPlan::Tiles(int64_t bm, int64_t bn, bool swap) const {
  int64_t tiles =
      TilesOf(Rows(swap), BestAxisTile(Rows(swap), bm)) * TilesOf(Cols(swap), BestAxisTile(Cols(swap), bn));
  for (const int64_t extent : forms.direct.Extents(anatomy, forms.direct.batch)) tiles *= extent;
  return tiles;
}

}  // namespace mycc
