// The plan of a product on a GPU's ordinary cores, without tensor cores, for the rule in simt.cc: the
// product's axes, the tiles of its operands in shared memory, the tiling of a point, and which points are
// legal. Extents, lengths and lanes are in elements. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tuner/space/rules/cuda/gpu.h"

namespace mycc {

// Vectors along the depth of at least this number of elements are transposed in registers before they are
// stored into their tile.
inline constexpr int64_t kTurnedLanes = 4;

// An operand's tile in shared memory, with the depth as its first dimension.
struct SharedTile {
  std::string buffer;        // the buffer that is read: a tensor, or the result of a stage of the group
  bool second = false;       // of a product of a tensor by itself: the one that is copied second
  bool computed = false;     // by that stage, tile by tile: padding
  int rank = 0;              // of a computed one
  bool along_depth = false;  // the depth is contiguous in memory
  bool has_side = true, has_depth = true;  // it varies with the side's axis, with the depth
  int64_t lanes = 1;                       // elements of a global access, at most
};

struct SimtPlan {
  std::string t;        // the product's name
  std::string grouped;  // the axis to be split by `group`, where groups lie along one (anatomy.h)
  int64_t group = 1;
  std::vector<std::string> axes, others, outer_reduce;  // the parts of loop names after "t."
  std::string m, n, k;
  int64_t rows = 1, columns = 1, depth = 1, count = 1;  // extents; count: of the other axes together
  int64_t bytes = 4;                                    // of a factor's element
  SharedTile a, b;                                      // of rows, of columns
  std::vector<std::string> epilogue;
  bool columns_apart = false;  // neighbouring threads have neighbouring columns, not vectors of them

  // Both tiles are zero where they reach beyond the edges, so that sums run over whole tiles.
  bool HasWholeTiles() const;
  // Copies can run ahead.
  bool CanPipeline() const;
  // Copies can also wait in registers, so that vectors along a contiguous depth are transposed.
  bool TurnsVectors() const;
  // Elements that a thread copies at once, so that all threads have as many accesses where copies run ahead.
  int64_t CopyLanes(const SharedTile& tile, const Values& v) const;
  // The part of the depth that a run has, in whole steps.
  int64_t RunLength(int64_t runs, int64_t tile_k) const;
  // Whether each run has a part of the depth, of two steps at least.
  bool HasRuns(int64_t runs, int64_t tile_k) const;
  bool Legal(const Values& v) const;

 private:
  int64_t TileElements(const SharedTile& tile, const Values& v) const;
  bool CanRunAhead(const SharedTile& tile, const Values& v) const;
};

SimtPlan MakeSimtPlan(const Anatomy& anatomy, const Group& group);

// The tiling of the problem by the values of a point: a warp is 4 x 8 threads; a thread's columns are
// `halves` vectors, each of them next to those of the neighbouring threads.
struct SimtTiling {
  static constexpr int64_t kWarpRows = 4, kWarpColumns = 8;
  SimtTiling(const SimtPlan& plan, const Values& v);

  int64_t threads() const { return warps_m * warps_n * kWarp; }

  int64_t vector, halves, warps_m, warps_n;
};

}  // namespace mycc
