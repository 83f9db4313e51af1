#include "tuner/space/rules/contraction_padding.h"

#include <algorithm>

#include "codegen/expr/affine.h"
#include "codegen/schedule/padding.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

// The most places beyond the border on one side: each may be a case of its own.
constexpr int64_t kMostBorder = 4;

// How an index of the image moves.
struct Movement {
  Linear linear;
  bool along_row = false, along_lane = false, along_sum = false, is_plain = true;
  int64_t place_step = 1, sum_step = 1;  // strides of the window and of its taps
};

Movement MovementOf(const Expr& index, const Stage& product, int tile_row, int lane) {
  Movement result{ToLinear(index)};
  for (const auto& [atom, coefficient] : result.linear.terms) {
    if (atom->op != Op::kVar) {
      result.is_plain = false;
      continue;
    }
    const auto is = [&](int axis) { return axis >= 0 && atom->var == product.axes[axis]; };
    result.along_row |= is(tile_row);
    result.along_lane |= is(lane);
    const bool is_sum = std::ranges::count(product.reduce_axes, atom->var) > 0;
    result.along_sum |= is_sum;
    (is_sum ? result.sum_step : result.place_step) = std::abs(coefficient);
  }
  return result;
}

// The share of all places and taps whose index lies outside of the elements.
double ShareOutside(const Linear& index, const Interval& elements) {
  const int64_t most = elements.max * 2 + 4096;
  std::vector<double> places = {1};  // how often each index occurs
  int64_t first = index.constant;
  for (const auto& [atom, coefficient] : index.terms) {
    const int64_t extent = atom->var->extent, step = std::abs(coefficient);
    if (static_cast<int64_t>(places.size()) + step * (extent - 1) > most) return 0;
    std::vector<double> moved(places.size() + step * (extent - 1), 0);
    for (size_t p = 0; p < places.size(); ++p) {
      for (int64_t v = 0; v < extent; ++v) moved[p + v * step] += places[p];
    }
    if (coefficient < 0) first -= step * (extent - 1);
    places = std::move(moved);
  }
  double outside = 0, all = 0;
  for (size_t p = 0; p < places.size(); ++p) {
    const int64_t place = first + static_cast<int64_t>(p);
    all += places[p];
    if (place < elements.min || place > elements.max) outside += places[p];
  }
  return outside / all;
}

// The time of a copy relative to the products'. It runs in vectors along the last axis, and few channels
// leave most of their lanes empty.
double CopyShare(const Stage& product, const Stage& pad, int64_t lanes) {
  constexpr double kCyclesAVector = 2;
  const int64_t last = pad.axes.back()->extent;
  const double vectors = static_cast<double>(pad.output->num_elements() / last * CeilDiv(last, lanes));
  double products = 1;
  for (const Var& axis : product.axes) products *= static_cast<double>(axis->extent);
  for (const Var& axis : product.reduce_axes) products *= static_cast<double>(axis->extent);
  return kCyclesAVector * vectors * static_cast<double>(lanes) / products;
}

}  // namespace

std::vector<int64_t> ContractionPadding::Choices() const {
  std::vector<int64_t> choices = {kSkipNone};
  if (!outer.empty()) choices.push_back(kSkipOuter);
  if (!rows.empty() && is_whole) choices.push_back(kSkipAll);
  return choices;
}

bool ContractionPadding::Fits(int64_t skip, int64_t tiles, bool has_tail) const {
  constexpr int64_t kMostKernels = 36;
  int64_t kernels = skip == kSkipNone ? 1 : outer_cases;
  // Inside of a tile that has a border is a kernel for each: of the first, of the last, of those between.
  if (skip == kSkipAll) kernels *= row_cases + std::min<int64_t>(tiles - 1, 2);
  return kernels * (has_tail ? 2 : 1) <= kMostKernels;
}

// Every border is a kernel of its own, which has to be worth its code.
int64_t ContractionPadding::Preferred(int64_t tiles, bool has_tail) const {
  constexpr double kLeastOuter = 0.02, kLeastOfAll = 0.06;
  const bool has_all = !rows.empty() && is_whole && Fits(kSkipAll, tiles, has_tail);
  if (has_all && outer_share + row_share + copy_share >= kLeastOfAll) return kSkipAll;
  const bool has_outer = !outer.empty() && Fits(kSkipOuter, tiles, has_tail);
  return has_outer && outer_share >= kLeastOuter ? kSkipOuter : kSkipNone;
}

ContractionPadding FindPadding(const Stage& product, const Operand& image, const Stage& pad, int tile_row,
                               int lane, int64_t lanes) {
  ContractionPadding padding;
  if (pad.reduce != ReduceOp::kNone || pad.value->op != Op::kSelect) return padding;
  padding.is_whole = IsElementInBox(pad.value);
  padding.copy_share = CopyShare(product, pad, lanes);
  for (int d = 0; d < static_cast<int>(pad.axes.size()); ++d) {
    const auto elements = ElementsAlong(pad.value, pad.axes[d]);
    if (!elements) continue;
    const Movement movement = MovementOf(image.index[d], product, tile_row, lane);
    const int64_t before = elements->min, after = pad.axes[d]->extent - 1 - elements->max;
    if (!movement.is_plain || !movement.along_sum || movement.along_lane ||
        std::max(before, after) > kMostBorder) {
      padding.is_whole = false;
      continue;
    }
    const int64_t step = movement.along_row ? movement.sum_step : movement.place_step;
    (movement.along_row ? padding.row_cases : padding.outer_cases) *=
        1 + CeilDiv(before, step) + CeilDiv(after, step);
    (movement.along_row ? padding.rows : padding.outer).push_back(d);
    (movement.along_row ? padding.row_share : padding.outer_share) +=
        ShareOutside(movement.linear, *elements);
  }
  return padding;
}

}  // namespace mycc
