#include "tuner/space/rules/contraction_plan.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

bool Adjacent(const std::vector<int>& axes) {
  for (size_t i = 1; i < axes.size(); ++i) {
    if (axes[i] != axes[i - 1] + 1) return false;
  }
  return true;
}

// The rows' addresses in a are equally far apart over the ends of the inner ones too.
bool RowsFollowEachOther(const Operand& a, const Stage& stage, const std::vector<int>& rows) {
  const ExprNode load{Op::kLoad, a.buffer->dtype, a.index, {}, nullptr, a.buffer};
  for (size_t i = 1; i < rows.size(); ++i) {
    const auto outer = StrideOf(load, stage.axes[rows[i - 1]]), inner = StrideOf(load, stage.axes[rows[i]]);
    if (!outer || !inner || *outer != *inner * stage.axes[rows[i]]->extent) return false;
  }
  return true;
}

int64_t LinePitch(const Operand& a, const Stage& stage, const std::vector<int>& rows) {
  if (rows.size() < 2) return 0;
  const ExprNode load{Op::kLoad, a.buffer->dtype, a.index, {}, nullptr, a.buffer};
  const int64_t line = StrideOf(load, stage.axes[rows.end()[-2]]).value_or(0),
                pixel = StrideOf(load, stage.axes[rows.back()]).value_or(0);
  return pixel > 0 && line % pixel == 0 ? line / pixel : 0;
}

constexpr int64_t kMostWindowSteps = 32;  // of a reduction, that are worth their code when unrolled

// The reduction axes by how far the operand moves along them, the farthest outermost.
std::vector<int> WindowOrder(const Operand& operand, const Stage& stage) {
  const ExprNode load{Op::kLoad, operand.buffer->dtype, operand.index, {}, nullptr, operand.buffer};
  std::vector<int> order;
  order.reserve(stage.reduce_axes.size());
  for (int k = 0; k < static_cast<int>(stage.reduce_axes.size()); ++k) order.push_back(k);
  std::ranges::stable_sort(order, [&](int a, int b) {
    return StrideOf(load, stage.reduce_axes[a]).value_or(0) >
           StrideOf(load, stage.reduce_axes[b]).value_or(0);
  });
  return order;
}

void FindPaddingOf(ContractionPlan* plan) {
  if (!plan->PadsScalarAlone()) return;
  const int tile_row = plan->way().rows.empty() ? -1 : plan->way().rows.back();
  plan->padding = FindPadding(plan->stage(), plan->way().scalar, plan->anatomy.stage(plan->prologue.front()),
                              tile_row, plan->way().cols.back(), plan->lanes);
  // The rows of tile registers are as many for every tap.
  if (plan->InTiles()) plan->padding.is_whole = false;
}

}  // namespace

void ContractionPlan::NameLoops(const std::string& block) {
  const auto loop = [&](int axis) { return absl::StrCat(block, ".", stage().axes[axis]->name); };
  t = block;
  n = loop(way().cols.back());
  rows.clear();
  outer.clear();
  for (int a : way().rows) rows.push_back(loop(a));
  for (int a : way().batch) outer.push_back(loop(a));
  for (int a : way().cols) {
    if (a != way().cols.back()) outer.push_back(loop(a));
  }
}

bool ContractionPlan::PadsScalarAlone() const {
  if (prologue.size() != 1 || way().scalar.producer != prologue.front() || MustPackA()) return false;
  const StageInfo& info = anatomy.info(prologue.front());
  return !info.is_output && info.readers.size() == 1;
}

std::optional<PixelLayout> ContractionPlan::LayoutOfPixels(int64_t ku) const {
  constexpr int64_t kLine = 64;
  if (!InTiles() || !PadsScalarAlone()) return std::nullopt;
  const Operand& image = way().scalar;
  if (image.PlainDim(stage().reduce_axes[k_order.back()]) != image.buffer->rank() - 1) return std::nullopt;
  const int64_t size = DTypeBytes(image.buffer->dtype), depth = image.buffer->shape.back();
  const int64_t line = kLine / size, step = std::min(ku * KGroup(), depth);
  const auto slot = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(step)));
  PixelLayout layout{step, step, RoundUp(depth, line)};
  if (depth % step == 0) layout = {step, slot, depth / step * slot};
  if (layout.pitch == depth) return std::nullopt;
  return layout;
}

size_t UnrolledOf(const std::vector<int>& order, const Stage& stage) {
  int64_t steps = 1;
  for (size_t inner = 0; inner < order.size(); ++inner) {
    steps *= stage.reduce_axes[order[order.size() - 1 - inner]]->extent;
    if (steps > kMostWindowSteps) return inner == 0 ? 0 : inner - 1;
  }
  return order.size() - 1;
}

int64_t ContractionPlan::RowsInTile(int64_t lines, int64_t mr) const {
  if (lines == 1 || !InTiles()) return lines * mr;
  const int64_t pixels = std::min(mr, M(false)), tile = product.instruction.m,
                apart = lines * RoundUp(pixels, tile);
  if (line_pitch < pixels) return apart;
  return std::min(apart, RoundUp((lines - 1) * line_pitch + pixels, tile));
}

ContractionPlan MakeContractionPlan(const Anatomy& anatomy, const Group& group, const Target& target,
                                    const CpuProduct& product) {
  const Stage& stage = anatomy.product(group.anchor);
  ContractionPlan plan{anatomy, group, target};
  plan.product = product;
  plan.lanes = VectorBytes(target) / DTypeBytes(stage.value->dtype);
  plan.registers = TileRegisters(target);
  plan.NameLoops(anatomy.name(group.anchor));
  // The rows of a tile register are equally far apart, those of panels one axis.
  plan.rows_fusable = plan.rows.size() > 1 && Adjacent(plan.way().rows) && !plan.MustPackA() &&
                      (!plan.InTiles() || RowsFollowEachOther(plan.way().scalar, stage, plan.way().rows));
  plan.line_pitch = LinePitch(plan.way().scalar, stage, plan.way().rows);
  for (int k = 0; k < static_cast<int>(stage.reduce_axes.size()); ++k) plan.k_order.push_back(k);
  std::ranges::stable_sort(plan.k_order, [&](int a, int b) {
    return stage.reduce_axes[a]->extent < stage.reduce_axes[b]->extent;
  });
  if (product.depth_axis >= 0)
    std::rotate(std::ranges::find(plan.k_order, product.depth_axis),
                std::ranges::find(plan.k_order, product.depth_axis) + 1, plan.k_order.end());
  plan.k_extent = stage.reduce_axes[plan.k_order.back()]->extent;
  plan.window_order = WindowOrder(product.way.scalar, stage);
  for (int member : group.members) {
    if (member < group.anchor) plan.prologue.push_back(member);
    if (member > group.anchor) plan.epilogue.push_back(member);
  }
  FindPaddingOf(&plan);
  return plan;
}

}  // namespace mycc
