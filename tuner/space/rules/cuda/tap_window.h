// The window of a convolution, as tiles of pixels in shared memory have it: the pixels of neighbouring taps
// are the same ones, a row or a column further. A tile with these few more pixels serves all taps of an axis
// (stage_window), where a tile for each tap has every pixel several times. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/workload/workload.h"
#include "tuner/space/rules/cuda/axis_tile.h"

namespace mycc {

struct TapWindow {
  int taps = 0;       // the reduction axis that runs over the taps
  size_t axis = 0;    // of the side's axes, the one whose pixels the taps shift
  int64_t reach = 0;  // pixels of a tile beyond its own, along that axis
  // A reduction axis whose taps lie one behind the other in both operands, channels and all: with the
  // channels it is the depth of a step, of `depth` elements. -1: none. Images of few channels have one.
  int joined = -1;
  size_t joined_axis =
      0;  // of the side's axes, the one along which they lie: a tile has several of its pixels
  int64_t depth = 0;
};

// `pixels` and `weights` are the operands' loads, `rows` the axes of the pixels, `depth` the reduction axis
// of the channels. `is_padded`: pixels beyond an edge are zeros of no tensor, so that no taps are joined.
std::optional<TapWindow> FindTapWindow(const Stage& stage, const Expr& pixels, const Expr& weights,
                                       const std::vector<int>& rows, int depth, bool is_padded);

// The tile of `size` pixels over axes of these extents that costs least: products of all its places, and
// copies of all its pixels.
AxisTile WindowTile(const std::vector<int64_t>& extents, int64_t size, const TapWindow& window);

}  // namespace mycc
