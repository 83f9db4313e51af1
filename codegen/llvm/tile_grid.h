// Which of AMX's eight tile registers holds what while one accumulator of m x n sums is computed: a grid of
// 16 x 16 sums at most each, a tile of a for each of its rows and one of b for each of its columns.
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

  bool fits() const { return rows() * columns() + rows() + columns() <= kRegisters; }
  bool is_full() const { return m % kRows == 0 && n % kRows == 0; }
  int Sum(int i, int j) const { return i * columns() + j; }
  int A(int i) const { return rows() * columns() + i; }
  int B(int j) const { return rows() * columns() + rows() + j; }

  // The operand of ldtilecfg: palette 1; bytes of a row and rows of each register. REQUIRES: fits().
  std::array<uint8_t, 64> Configuration() const {
    std::array<uint8_t, 64> bytes = {};
    bytes[0] = 1;
    const auto set = [&](int tile, int64_t tile_rows, int64_t row_bytes) {
      bytes[16 + 2 * tile] = static_cast<uint8_t>(row_bytes);
      bytes[48 + tile] = static_cast<uint8_t>(tile_rows);
    };
    for (int i = 0; i < rows(); ++i) {
      set(A(i), RowsOf(i), 64);
      for (int j = 0; j < columns(); ++j) set(Sum(i, j), RowsOf(i), 4 * ColumnsOf(j));
    }
    for (int j = 0; j < columns(); ++j) set(B(j), kRows, 4 * ColumnsOf(j));
    return bytes;
  }
  // Of whole tiles, whatever the grid.
  static std::array<uint8_t, 64> WholeConfiguration() {
    std::array<uint8_t, 64> bytes = {};
    bytes[0] = 1;
    for (int tile = 0; tile < kRegisters; ++tile) bytes[16 + 2 * tile] = 64, bytes[48 + tile] = 16;
    return bytes;
  }
};

}  // namespace mycc
