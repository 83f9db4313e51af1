// The assignment of AMX's tile registers for grids of every size.
#include "codegen/llvm/tile_grid.h"

#include <set>

#include "gtest/gtest.h"

namespace mycc {
namespace {

int64_t RowsIn(const TileGrid::Bytes& configuration, int tile) { return configuration[48 + tile]; }
int64_t BytesIn(const TileGrid::Bytes& configuration, int tile) { return configuration[16 + 2 * tile]; }

// Checks the registers of one accumulator: sums that nothing else uses, and operands' tiles of their size
// that no tile in use at the same time shares.
void Check(const TileGrid& grid) {
  SCOPED_TRACE(testing::Message() << grid.m << "x" << grid.n << " in blocks of " << grid.block_rows);
  const TileGrid::Bytes configuration = grid.Configuration();
  std::set<int> sums, kept, passing;
  for (int i = 0; i < grid.rows(); ++i) {
    (grid.keeps_a() ? kept : passing).insert(grid.A(i));
    EXPECT_EQ(RowsIn(configuration, grid.A(i)), grid.RowsOf(i));
    EXPECT_EQ(BytesIn(configuration, grid.A(i)), 64);
    for (int j = 0; j < grid.columns(); ++j) {
      sums.insert(grid.Sum(i, j));
      EXPECT_EQ(RowsIn(configuration, grid.Sum(i, j)), grid.RowsOf(i));
      EXPECT_EQ(BytesIn(configuration, grid.Sum(i, j)), 4 * grid.ColumnsOf(j));
    }
  }
  for (int j = 0; j < grid.columns(); ++j) {
    (grid.keeps_a() ? passing : kept).insert(grid.B(j));
    EXPECT_EQ(RowsIn(configuration, grid.B(j)), 16);
    EXPECT_EQ(BytesIn(configuration, grid.B(j)), 4 * grid.ColumnsOf(j));
  }
  EXPECT_EQ(sums.size(), static_cast<size_t>(grid.rows() * grid.columns()));
  EXPECT_EQ(kept.size(), static_cast<size_t>(grid.kept()));
  EXPECT_GE(passing.size(), static_cast<size_t>(std::min(2, grid.passing())));
  std::set<int> all = sums;
  all.insert(kept.begin(), kept.end());
  all.insert(passing.begin(), passing.end());
  EXPECT_EQ(all.size(), sums.size() + kept.size() + passing.size());
  EXPECT_LT(*all.rbegin(), TileGrid::kRegisters);
}

TEST(TileGridTest, EveryGridThatFitsHasItsRegisters) {
  int fitting = 0;
  for (int64_t m = 1; m <= 96; ++m) {
    for (int64_t n = 1; n <= 96; ++n) {
      if (!TileGrid{m, n}.fits()) continue;
      ++fitting;
      Check({m, n});
    }
  }
  EXPECT_GT(fitting, 16 * 16 * 8);
  EXPECT_TRUE((TileGrid{80, 16}.fits() && TileGrid{32, 32}.fits() && TileGrid{16, 80}.fits()));
  EXPECT_FALSE((TileGrid{48, 32}.fits() || TileGrid{96, 16}.fits()));
}

TEST(TileGridTest, BlocksOfRowsBeginATileEach) {
  int fitting = 0;
  for (int64_t block = 1; block <= 40; ++block) {
    for (int64_t blocks = 1; blocks <= 5; ++blocks) {
      for (int64_t n = 1; n <= 48; ++n) {
        const TileGrid grid{block * blocks, n, block};
        if (!grid.fits()) continue;
        ++fitting;
        Check(grid);
      }
    }
  }
  EXPECT_GT(fitting, 16 * 16 * 4);
  const TileGrid grid{56, 16, 28};
  EXPECT_EQ(grid.rows(), 4);
  EXPECT_EQ(grid.FirstRow(1), 16);
  EXPECT_EQ(grid.RowsOf(1), 12);
  EXPECT_EQ(grid.FirstRow(2), 28);
}

// Then one configuration serves all of them.
TEST(TileGridTest, WholeTilesAreConfiguredAlike) {
  const TileGrid::Bytes whole = TileGrid{32, 32}.Configuration();
  EXPECT_EQ((TileGrid{64, 16}.Configuration()), whole);
  EXPECT_EQ((TileGrid{16, 48}.Configuration()), whole);
  EXPECT_NE((TileGrid{24, 32}.Configuration()), whole);
}

}  // namespace
}  // namespace mycc
