// The layout of a tensor-core accumulator: the thread and the register of each element. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/stmt.h"
#include "codegen/target/target.h"

namespace mycc {

// An accumulator tile of `rows` x `columns` elements, divided among warps (a warpgroup's four warps lie below
// each other). Each warp has `row_tiles` x `column_tiles` tiles of 16 x 8 elements; its row tiles are
// row_step rows apart.
struct FragmentLayout {
  int64_t rows = 0, columns = 0;
  WarpGrid warps;
  bool warpgroups = false;

  int64_t row_tiles() const { return rows / (warps.rows * row_step()); }
  int64_t column_tiles() const { return columns / (warps.columns * 8); }
  int64_t row_step() const { return warpgroups ? 64 : 16; }
  int64_t threads() const { return int64_t{32} * warps.rows * warps.columns * (warpgroups ? 4 : 1); }
  int64_t registers() const { return row_tiles() * column_tiles() * 4; }
  // The thread's register for a row tile, a column tile, the upper (0) or lower (1) half of the tile's rows,
  // and an even (0) or odd (1) column: row-major.
  int64_t Register(int64_t row_tile, int64_t column_tile, int half, int odd) const {
    return ((row_tile * 2 + half) * column_tiles() + column_tile) * 2 + odd;
  }
};

// FailedPrecondition when the tile does not divide into whole instructions for every warp.
absl::StatusOr<FragmentLayout> FragmentLayoutOf(const Mma& mma, const Target& target);

// Loops over a tile's elements in the order of threads and their registers.
struct FragmentLoops {
  std::vector<std::pair<Var, LoopKind>> loops;  // outermost first
  Expr row, column;

  Stmt Around(Stmt body) const;
};
FragmentLoops MakeFragmentLoops(const FragmentLayout& layout, const std::string& prefix);

}  // namespace mycc
