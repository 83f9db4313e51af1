#include "tuner/space/rules/cuda/tap_window.h"

#include <algorithm>

#include "codegen/expr/affine.h"
#include "tuner/space/rules/cuda/gpu.h"

namespace mycc {
namespace {

constexpr int64_t kPanelBytes = 128;      // of the widest swizzle: the depth of a step
constexpr int64_t kLeastPanelBytes = 32;  // of the narrowest: channels of a tap
constexpr int64_t kSwizzleRows = 8;       // after which a swizzle repeats: taps shift by a multiple of them

int64_t StepOf(const Expr& index, const Var& axis) {
  const auto linear = SplitLinear(index, axis.get());
  return linear ? linear->coefficient : 0;
}

// Whether the axis steps through one index alone.
bool IsOfOneIndex(const Expr& load, const Var& axis) {
  return std::ranges::count_if(load->args, [&](const Expr& index) { return UsesVar(index, axis.get()); }) ==
         1;
}

// The place in `rows` of the axis that steps through the index beside the taps; nullopt without one.
std::optional<size_t> AxisBeside(const Stage& stage, const Expr& index, const std::vector<int>& rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (StepOf(index, stage.axes[rows[i]]) > 0) return i;
  }
  return std::nullopt;
}

// Whether the axis's taps are neighbours in memory, each with all its channels.
bool LiesBeforeChannels(const Expr& load, const Var& axis, const Var& channels) {
  const size_t rank = load->args.size();
  if (rank < 2 || !IsOfOneIndex(load, axis) || StepOf(load->args[rank - 2], axis) != 1) return false;
  const Expr& last = load->args[rank - 1];
  return last->op == Op::kVar && last->var == channels;
}

}  // namespace

std::optional<TapWindow> FindTapWindow(const Stage& stage, const Expr& pixels, const Expr& weights,
                                       const std::vector<int>& rows, int depth, bool is_padded) {
  std::optional<TapWindow> window;
  const int count = static_cast<int>(stage.reduce_axes.size());
  for (int r = 0; r < count && !window; ++r) {
    const Var& taps = stage.reduce_axes[r];
    if (r == depth || taps->extent == 1 || !IsOfOneIndex(pixels, taps)) continue;
    for (const Expr& index : pixels->args) {
      for (size_t i = 0; i < rows.size(); ++i) {
        const Var& axis = stage.axes[rows[i]];
        const int64_t tap = StepOf(index, taps), pixel = StepOf(index, axis);
        if (tap <= 0 || pixel <= 0 || tap % pixel != 0 || !IsOfOneIndex(pixels, axis)) continue;
        window = TapWindow{r, i, tap / pixel * (taps->extent - 1)};
      }
    }
  }
  if (!window) return std::nullopt;
  const Var& channels = stage.reduce_axes[depth];
  const int64_t stored = pixels->buffer->shape.back();
  const bool are_few = !is_padded && stored == PowerAtLeast(channels->extent) &&
                       stored * DTypeBytes(pixels->dtype) >= kLeastPanelBytes &&
                       stored == weights->buffer->shape.back();
  for (int r = 0; r < count && are_few; ++r) {
    const Var& taps = stage.reduce_axes[r];
    const int64_t joined = PowerAtLeast(taps->extent) * stored;
    if (r == window->taps || r == depth || taps->extent == 1 || joined != taps->extent * stored ||
        joined * DTypeBytes(pixels->dtype) > kPanelBytes || !LiesBeforeChannels(pixels, taps, channels) ||
        !LiesBeforeChannels(weights, taps, channels))
      continue;
    const std::optional<size_t> axis = AxisBeside(stage, pixels->args[pixels->args.size() - 2], rows);
    if (!axis) continue;
    window->joined = r;
    window->joined_axis = *axis;
    window->depth = joined;
  }
  return window;
}

AxisTile WindowTile(const std::vector<int64_t>& extents, int64_t size, const TapWindow& window) {
  const auto cost = [&](const AxisTile& tile) -> std::optional<double> {
    const int64_t own = tile[window.axis], others = size / own;
    if (others % kSwizzleRows != 0 || (window.joined >= 0 && tile[window.joined_axis] == 1))
      return std::nullopt;
    return static_cast<double>(TilesOf(extents, tile)) *
           static_cast<double>(size + (own + window.reach) * others);
  };
  const int64_t joined = window.joined >= 0 ? static_cast<int64_t>(window.joined_axis) : -1;
  std::vector<int64_t> question = {-1, size, static_cast<int64_t>(window.axis), window.reach, joined};
  question.insert(question.end(), extents.begin(), extents.end());
  return RememberedTile(question, [&] { return CheapestTile(extents, size, cost); });
}

}  // namespace mycc
