// A contraction as the wgmma rule sees it: tile sizes, their registers and shared memory, and which points
// are legal. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "tuner/space/rules/cuda/tensor_core.h"

namespace mycc {

// A value of decision "persist": thread blocks share the tiles out by steps. 1: tile by tile; 0: one tile
// each.
inline constexpr int64_t kStream = 2;
inline constexpr int64_t kPanelBytes = 128;  // of the widest swizzle: the depth of a tile

struct WgmmaPlan : TensorPlan {
  // The depth of a tile: one panel of a swizzle, or two. Shallow sums, and runs that others follow (the
  // groups of a convolution), have narrower ones.
  int64_t bk(const Values& v) const { return v.at("panels") * panel(v); }
  int64_t panel(const Values& v) const { return PanelBytes(t(v)) / DTypeBytes(row.operand); }
  // The window whose taps a step multiplies; null where each tap is a step.
  const TapWindow* window(const Values& v) const;
  // Elements of the depth of a product: bk, or taps and channels in one.
  int64_t ProductDepth(const Values& v) const;
  // Whether the tile of b is whole, the same for all tiles of results, and stays in shared memory.
  bool IsStationary(const Values& v) const;
  // Tiles of rows and of columns.
  AxisTile RowTile(const Values& v) const;
  AxisTile ColTile(const Values& v) const;
  int64_t PanelBytes(const TensorContraction& t) const;
  // Tiles of the depth, and parts of it, end where a run does.
  bool EndsWithRuns(const Values& v) const;
  // Registers of a thread for its sums, and for partial ones: of 64 rows and at most 128 columns.
  int64_t Sums(int64_t bm, int64_t bn) const {
    return bm / 64 * bn / 2 + (row.partial_depth == 0 ? 0 : bn > 128 ? bn / 4 : bn / 2);
  }
  // The bytes of an element as a tile of the matrix product is stored.
  int64_t StoredBytes(int64_t split) const {
    return DTypeBytes(split > 1 ? stage().output->dtype : forms.direct.output);
  }
  int64_t SharedBytes(const Values& v) const;

  // Tiles of results.
  int64_t TilesOf(const Values& v) const;
  // Iterations of the grid's loop, of clusters where there are such: group tails make more than there are
  // tiles.
  int64_t GridTiles(const Values& v) const;
  // The steps of a tile's ring.
  int64_t Steps(const Values& v) const;
  // The groups of blocks that share the tiles beyond whole waves (stream-K); no groups where that does not
  // pay.
  StreamKGroups Groups(const Values& v) const;

  // Closed-form legality of a point.
  bool Legal(const Values& v) const;
  // Groups of tiles of the last row axis leave few places empty.
  bool GroupFits(const Values& v) const;
  // The innermost tile of an operand's contiguous axis, in elements; `tile` is that of its side.
  int64_t InnerTile(const Values& v, const TensorOperand& operand, const AxisTile& tile) const;

 private:
  bool ClusterFits(const Values& v) const;
  bool TilesGroups(const Values& v) const;
  bool WindowFits(const Values& v) const;
  bool StationaryFits(const Values& v) const;
  bool HasOrder(const TensorOperand& operand, const std::vector<int>& axes, const AxisTile& tile) const;
};

// Elements along a tile's rows in memory, in bytes: the widest swizzle that divides them.
int64_t SwizzleOf(int64_t row_bytes);
// Tiles of the last axis.
int64_t TilesOfLast(const std::vector<int64_t>& extents, const AxisTile& tile);
// The blocks of a cluster differ along the side of the smaller tile, and share the larger one.
bool DifferInRows(const Values& v);

}  // namespace mycc
