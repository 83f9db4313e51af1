// Which of AMX's eight tile registers holds what while one accumulator of m x n sums is computed: a grid of
// 16 x 16 sums at most each. The tiles of the operand that has fewer, of a for each row of the grid and of b
// for each column, stay while those of the other one pass by, through the registers that are left.
// Thread rule: a value.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace mycc {

struct TileGrid {
  static constexpr int64_t kRows = 16;  // of a tile; and columns of 4 bytes
  static constexpr int kRegisters = 8;

  int64_t m, n;

  int rows() const { return static_cast<int>((m + kRows - 1) / kRows); }
  int columns() const { return static_cast<int>((n + kRows - 1) / kRows); }
  // Rows of the i-th tile of a, columns of the j-th one of b.
  int64_t RowsOf(int i) const { return std::min(kRows, m - i * kRows); }
  int64_t ColumnsOf(int j) const { return std::min(kRows, n - j * kRows); }

  // A tile that passes by is loaded while the one before is in use, and the last one may have fewer rows or
  // columns than the others.
  bool fits() const { return rows() * columns() + kept() + std::min(2, passing()) <= kRegisters; }
  bool keeps_a() const { return rows() < columns(); }
  int kept() const { return std::min(rows(), columns()); }
  int passing() const { return std::max(rows(), columns()); }
  int Sum(int i, int j) const { return i * columns() + j; }
  int A(int i) const { return keeps_a() ? Kept(i) : Passing(i); }
  int B(int j) const { return keeps_a() ? Passing(j) : Kept(j); }

  // The operand of ldtilecfg: palette 1; bytes of a row and rows of each register, whole tiles where none is
  // used. REQUIRES: fits().
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
  int Kept(int tile) const { return rows() * columns() + tile; }
  // In turns, but for the last one.
  int Passing(int tile) const {
    const int first = rows() * columns() + kept(), free = kRegisters - first;
    if (passing() <= free) return first + tile;
    return tile + 1 == passing() ? kRegisters - 1 : first + tile % (free - 1);
  }
};

}  // namespace mycc
