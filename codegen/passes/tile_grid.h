// Assigns AMX's eight tile registers for an accumulator of m x n sums, a grid of tiles as large as those of
// one instruction. Each row of the grid has a tile of a, each column a tile of b. The operand with fewer
// tiles stays loaded; the tiles of the other are loaded in turn into the remaining registers. One
// configuration serves all steps of the depth, so the operands' tiles of all steps are equally deep. Thread
// rule: a value.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "codegen/expr/integers.h"
#include "codegen/ir/stmt.h"
#include "codegen/target/instructions.h"

namespace mycc {

struct TileGrid {
  static constexpr int kRegisters = 8;

  int64_t m, n;
  int64_t block_rows = 0;   // rows of each block of a; 0: a single block
  int64_t depth_bytes = 0;  // of a step; whole groups; 0: as deep as one instruction
  // 0: each block begins with a tile. Else rows of a from one block's first to the next one's: the tiles run
  // on through the blocks and the rows between them, whose sums nobody wants.
  int64_t block_pitch = 0;
  const Instruction* row = InstructionNamed("amx.bf16");

  int rows() const {
    return static_cast<int>(block_pitch > 0 ? CeilDiv(Span(), TileRows()) : m / Block() * TilesInBlock());
  }
  int columns() const { return static_cast<int>(CeilDiv(n, TileColumns())); }
  int64_t TileRows() const { return row->sums.memory.extent(0); }
  int64_t TileColumns() const { return row->sums.memory.extent(1); }
  // Bytes of a's rows, and of a column of sums, which is a group of b's in a row of b.
  int64_t Depth() const { return depth_bytes > 0 ? depth_bytes : row->k * DTypeBytes(row->operand); }
  int64_t ColumnBytes() const { return DTypeBytes(row->accumulator); }
  // The number of rows of a's i-th tile, and of columns of b's j-th tile.
  int64_t RowsOf(int i) const {
    const int64_t rest =
        block_pitch > 0 ? Span() - i * TileRows() : Block() - i % TilesInBlock() * TileRows();
    return std::min(TileRows(), rest);
  }
  int64_t ColumnsOf(int j) const { return std::min(TileColumns(), n - j * TileColumns()); }
  // The first row of a's i-th tile; with a pitch, counted with the rows between blocks.
  int64_t FirstRow(int i) const {
    if (block_pitch > 0) return i * TileRows();
    return i / TilesInBlock() * Block() + i % TilesInBlock() * TileRows();
  }
  // The row of sums that the r-th row of a's i-th tile makes; -1: it lies between blocks.
  int64_t SumRow(int i, int64_t r) const {
    const int64_t sum_row = FirstRow(i) + r;
    if (block_pitch == 0) return sum_row;
    const int64_t in_block = sum_row % block_pitch;
    return in_block < Block() ? sum_row / block_pitch * Block() + in_block : -1;
  }

  // Two registers for the passing operand: a tile is loaded while the one before is in use, and may be
  // smaller than that.
  bool fits() const { return rows() * columns() + kept() + std::min(2, passing()) <= kRegisters; }
  bool keeps_a() const { return rows() < columns(); }
  int kept() const { return std::min(rows(), columns()); }
  int passing() const { return std::max(rows(), columns()); }
  int Sum(int i, int j) const { return i * columns() + j; }
  int A(int i) const {
    if (is_small()) return kFirstA + (RowsOf(i) < RowsOf(0) ? 1 : has_two_sizes() ? 0 : i % 2);
    return keeps_a() ? Kept(i) : Passing(i);
  }
  int B(int j) const {
    if (is_small()) return kFirstB + j;
    return keeps_a() ? Passing(j) : Kept(j);
  }

  // The operand of ldtilecfg: palette 1, and the row bytes and rows of each register. Unused registers are
  // whole tiles of what small grids have there: those of whole tiles then have the same configuration,
  // whatever the depth. To load another one takes 200 cycles. REQUIRES: fits().
  using Bytes = std::array<uint8_t, 64>;
  Bytes Configuration() const {
    Bytes bytes = {};
    bytes[0] = 1;
    const auto set = [&](int tile, int64_t tile_rows, int64_t row_bytes) {
      bytes[16 + 2 * tile] = static_cast<uint8_t>(row_bytes);
      bytes[48 + tile] = static_cast<uint8_t>(tile_rows);
    };
    const int64_t groups = Depth() / ColumnBytes();  // rows of b
    for (int tile = 0; tile < kFirstB; ++tile) set(tile, TileRows(), ColumnBytes() * TileColumns());
    for (int tile = kFirstB; tile < kFirstA; ++tile) set(tile, groups, ColumnBytes() * TileColumns());
    for (int tile = kFirstA; tile < kRegisters; ++tile) set(tile, TileRows(), Depth());
    for (int i = 0; i < rows(); ++i) {
      set(A(i), RowsOf(i), Depth());
      for (int j = 0; j < columns(); ++j) set(Sum(i, j), RowsOf(i), ColumnBytes() * ColumnsOf(j));
    }
    for (int j = 0; j < columns(); ++j) set(B(j), groups, ColumnBytes() * ColumnsOf(j));
    return bytes;
  }

 private:
  int64_t Block() const { return block_rows == 0 ? m : block_rows; }
  int64_t TilesInBlock() const { return CeilDiv(Block(), TileRows()); }
  // Rows from the first block's first to the last one's last.
  int64_t Span() const { return (m / Block() - 1) * block_pitch + Block(); }

  // Up to four by one or two by two tiles: sums, two tiles of b, two of a, in the same registers for all.
  static constexpr int kFirstB = 4, kFirstA = 6;
  bool is_small() const { return columns() <= 2 && rows() * columns() <= kFirstB; }
  bool has_two_sizes() const {
    return keeps_a() ? ColumnsOf(0) != ColumnsOf(columns() - 1) : RowsOf(0) != RowsOf(rows() - 1);
  }

  int Kept(int tile) const { return rows() * columns() + tile; }
  // In turns; smaller ones, where there are two sizes, through a register of their own.
  int Passing(int tile) const {
    const int first = rows() * columns() + kept(), free = kRegisters - first;
    if (passing() <= free) return first + tile;
    const auto size = [&](int t) { return keeps_a() ? ColumnsOf(t) : RowsOf(t); };
    if (!has_two_sizes()) return first + tile % free;
    return size(tile) < size(0) ? kRegisters - 1 : first + tile % (free - 1);
  }
};

// The bytes of a's rows that the product multiplies.
inline int64_t DepthBytes(const Mma& mma) { return mma.k * DTypeBytes(mma.a.buffer->dtype); }

// The grid of fewest tiles: short lines of an image share some if they are a number of its pixels apart.
inline TileGrid GridOf(const Mma& mma, int64_t depth_bytes = 0) {
  const TileView& a = mma.a;
  const TileGrid grid{mma.m, mma.n, a.block_rows, depth_bytes, /*block_pitch=*/0, mma.row()};
  if (a.block_rows == 0 || a.row_stride <= 0 || a.block_stride % a.row_stride != 0) return grid;
  TileGrid joined = grid;
  joined.block_pitch = a.block_stride / a.row_stride;
  return joined.block_pitch >= a.block_rows && joined.rows() < grid.rows() ? joined : grid;
}

}  // namespace mycc
