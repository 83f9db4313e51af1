// Assigns AMX's eight tile registers for an accumulator of m x n sums, a grid of tiles of at most 16 x 16.
// Each row of the grid has a tile of a, each column a tile of b. The operand with fewer tiles stays loaded;
// the tiles of the other are loaded in turn into the remaining registers. Thread rule: a value.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace mycc {

struct TileGrid {
  static constexpr int64_t kRows = 16;  // rows of a tile, and columns of 4 bytes
  static constexpr int kRegisters = 8;

  int64_t m, n;
  int64_t block_rows = 0;  // rows of each block of a; a tile has rows of one block; 0: a single block

  int rows() const { return static_cast<int>(m / Block() * TilesInBlock()); }
  int columns() const { return static_cast<int>(Tiles(n)); }
  // The number of rows of a's i-th tile, its first row, and the number of columns of b's j-th tile.
  int64_t RowsOf(int i) const { return std::min(kRows, Block() - i % TilesInBlock() * kRows); }
  int64_t FirstRow(int i) const { return i / TilesInBlock() * Block() + i % TilesInBlock() * kRows; }
  int64_t ColumnsOf(int j) const { return std::min(kRows, n - j * kRows); }

  // Two registers for the passing operand: a tile is loaded while the one before is in use, and may be
  // smaller than that.
  bool fits() const { return rows() * columns() + kept() + std::min(2, passing()) <= kRegisters; }
  bool keeps_a() const { return rows() < columns(); }
  int kept() const { return std::min(rows(), columns()); }
  int passing() const { return std::max(rows(), columns()); }
  int Sum(int i, int j) const { return i * columns() + j; }
  int A(int i) const { return keeps_a() ? Kept(i) : Passing(i); }
  int B(int j) const { return keeps_a() ? Passing(j) : Kept(j); }

  // The operand of ldtilecfg: palette 1, and the row bytes and rows of each register. Unused registers are
  // whole tiles. REQUIRES: fits().
  using Bytes = std::array<uint8_t, 64>;
  Bytes Configuration() const {
    Bytes bytes = {};
    bytes[0] = 1;
    const auto set = [&](int tile, int64_t tile_rows, int64_t row_bytes) {
      bytes[16 + 2 * tile] = static_cast<uint8_t>(row_bytes);
      bytes[48 + tile] = static_cast<uint8_t>(tile_rows);
    };
    for (int tile = 0; tile < kRegisters; ++tile) set(tile, kRows, 64);
    for (int i = 0; i < rows(); ++i) {
      set(A(i), RowsOf(i), 64);
      for (int j = 0; j < columns(); ++j) set(Sum(i, j), RowsOf(i), 4 * ColumnsOf(j));
    }
    for (int j = 0; j < columns(); ++j) set(B(j), kRows, 4 * ColumnsOf(j));
    return bytes;
  }

 private:
  static int64_t Tiles(int64_t extent) { return (extent + kRows - 1) / kRows; }
  int64_t Block() const { return block_rows == 0 ? m : block_rows; }
  int64_t TilesInBlock() const { return Tiles(Block()); }

  int Kept(int tile) const { return rows() * columns() + tile; }
  // In turns; smaller ones, where there are two sizes, through a register of their own.
  int Passing(int tile) const {
    const int first = rows() * columns() + kept(), free = kRegisters - first;
    if (passing() <= free) return first + tile;
    const auto size = [&](int t) { return keeps_a() ? ColumnsOf(t) : RowsOf(t); };
    const bool two_sizes = size(0) != size(passing() - 1);
    if (!two_sizes) return first + tile % free;
    return size(tile) < size(0) ? kRegisters - 1 : first + tile % (free - 1);
  }
};

}  // namespace mycc
