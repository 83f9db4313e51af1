// The layouts of tiles in the registers of tensor-core threads: the thread and the register of each element.
// Pure.
//
// A layout maps (thread, value) to a coordinate, and follows from the instruction. Accumulators, 16-bit left
// operands and vectors of rows are the same map with other columns:
//
//   row    = warp row * .. + w * 16 + lr + t * 16 or 64 + h * 8      lr = lane / 4, lc = lane % 4
//   column = warp column * .. + lc * 2 + n * 8 + e
//
// A vector of rows has no columns: every lane of a quad (lc) has all of its rows. The m16n8 tiles of mma.sync
// and the m64nN tiles of wgmma (four warps, one below the other) agree inside 16 rows and 8 columns, and an
// accumulator of 16 columns has the elements of a left operand 16 deep in the threads that multiply them [PTX
// ISA, "Matrix fragments" of mma.m16n8k16 and "Register fragments" of wgmma].
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/stmt.h"
#include "codegen/target/target.h"

namespace mycc {

// A tile of `rows` x `columns` elements, divided among warps (a warpgroup's four warps lie below each other).
// Each warp has `row_tiles` x `column_tiles` tiles of 16 x 8 elements; its row tiles are row_step rows apart.
// 0 columns: a vector of the rows.
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
  // The first of the two consecutive registers (of even and odd column) that make each 32-bit register of a
  // left operand: the 16 columns from column tile 2 * step are the depth of one instruction.
  std::array<int64_t, 4> OperandRegisters(int64_t row_tile, int64_t step) const {
    return {Register(row_tile, 2 * step, 0, 0), Register(row_tile, 2 * step, 1, 0),
            Register(row_tile, 2 * step + 1, 0, 0), Register(row_tile, 2 * step + 1, 1, 0)};
  }

  // The same rows in the same threads.
  FragmentLayout WithColumns(int64_t other) const { return {rows, other, warps, warpgroups}; }
  bool SameRows(const FragmentLayout& other) const {
    return rows == other.rows && warps == other.warps && warpgroups == other.warpgroups;
  }
  bool operator==(const FragmentLayout&) const = default;
};

// "64x32 among 2x1 warps".
std::string DescribeLayout(const FragmentLayout& layout);

// The accumulator's. FailedPrecondition when the tile does not divide into whole instructions for every warp.
absl::StatusOr<FragmentLayout> FragmentLayoutOf(const Mma& mma, const Target& target);

// Loops over a tile's elements in the order of threads and their registers.
struct FragmentLoops {
  std::vector<std::pair<Var, LoopKind>> loops;  // outermost first
  Expr row, column;
  // Threads with other values have copies of the elements of threads with 0 here: those that a vector of rows
  // is not divided among. Null for none.
  Expr copy;

  Stmt Around(Stmt body) const;
};
// `columns`: how a thread's pairs of columns are visited.
FragmentLoops MakeFragmentLoops(const FragmentLayout& layout, const std::string& prefix,
                                LoopKind pairs = LoopKind::kVector);

}  // namespace mycc
