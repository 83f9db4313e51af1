// The layouts of tiles in the registers of tensor-core threads: the thread and the register of each element.
// Pure.
//
// A layout maps (thread, value) to a coordinate, and follows from the instruction's row: the fragment of its
// sums, repeated below and beside itself in each warp, or warpgroup. A tile in registers that is a left
// operand, and vectors of rows, are divided alike: a vector has no columns, so that every lane of a quad has
// all of its rows.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/stmt.h"
#include "codegen/target/target.h"

namespace mycc {

// A tile of `rows` x `columns` elements, divided among warps or warpgroups. Each has `row_tiles` x
// `column_tiles` times the elements of one instruction, `unit`. 0 columns: a vector of the rows.
struct FragmentLayout {
  int64_t rows = 0, columns = 0;
  WarpGrid warps;
  Fragment unit;

  int64_t row_tiles() const { return rows / (warps.rows * unit.rows); }
  int64_t column_tiles() const { return columns / (warps.columns * unit.columns); }
  int64_t registers() const { return row_tiles() * column_tiles() * unit.values(); }
  // (thread, value) -> element of the tile, a thread's values row by row. REQUIRES: it has columns.
  Fragment Whole() const;
  // The thread's register for the element that is `row` rows below and `column` columns beside its first one.
  int64_t Register(int64_t row, int64_t column) const;
  // The first of the two consecutive registers that make each 32-bit register of a left operand of 16 bits,
  // for one row tile and one step along the depth. None where its elements are in other threads than the
  // tile's.
  std::vector<int64_t> OperandRegisters(const Fragment& operand, int64_t row_tile, int64_t step) const;

  // A digit of a thread's or a value's number; the name is that of its loop.
  struct Digit {
    const char* name;
    bool is_thread;
    Fragment::Step step;
  };
  std::vector<Digit> Digits() const;  // those of threads first, the slowest of each first

  // The same rows in the same threads.
  FragmentLayout WithColumns(int64_t other) const { return {rows, other, warps, unit}; }
  bool SameRows(const FragmentLayout& other) const {
    return rows == other.rows && warps == other.warps && unit == other.unit;
  }
  bool operator==(const FragmentLayout&) const = default;
};

// "64x32 among 2x1 warps".
std::string DescribeLayout(const FragmentLayout& layout);

// The accumulator's. FailedPrecondition when the tile does not divide into whole instructions for every warp.
absl::StatusOr<FragmentLayout> FragmentLayoutOf(const Mma& mma, const Target& target);

// Loops over a tile's elements in the order of threads and their registers.
struct FragmentLoops {
  std::vector<LoopSpec> loops;  // outermost first
  Expr row, column;
  // Threads with other values have copies of the elements of threads with 0 here: those that a vector of rows
  // is not divided among. Null for none.
  Expr copy;
};
// `columns`: how a thread's pairs of columns are visited.
FragmentLoops MakeFragmentLoops(const FragmentLayout& layout, const std::string& prefix,
                                LoopKind pairs = LoopKind::kVector);

}  // namespace mycc
