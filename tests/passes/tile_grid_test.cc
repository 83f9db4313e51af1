// The assignment of AMX's tile registers for grids of every size.
#include "codegen/passes/tile_grid.h"

#include <set>

#include "gtest/gtest.h"

namespace mycc {
namespace {

constexpr int64_t kMostDepthBytes = 64;  // of amx.bf16

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
    EXPECT_EQ(BytesIn(configuration, grid.A(i)), grid.Depth());
    for (int j = 0; j < grid.columns(); ++j) {
      sums.insert(grid.Sum(i, j));
      EXPECT_EQ(RowsIn(configuration, grid.Sum(i, j)), grid.RowsOf(i));
      EXPECT_EQ(BytesIn(configuration, grid.Sum(i, j)), 4 * grid.ColumnsOf(j));
    }
  }
  for (int j = 0; j < grid.columns(); ++j) {
    (grid.keeps_a() ? passing : kept).insert(grid.B(j));
    EXPECT_EQ(RowsIn(configuration, grid.B(j)), grid.Depth() / 4);
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

TEST(TileGridTest, StepsMayBeLessDeep) {
  for (int64_t depth = 4; depth <= kMostDepthBytes; depth += 4) Check({32, 24, 0, depth});
}

// Short lines of an image, with a border between one and the next.
TEST(TileGridTest, TilesRunOnThroughBlocks) {
  int fitting = 0;
  for (int64_t block = 1; block <= 40; ++block) {
    for (int64_t blocks = 1; blocks <= 8; ++blocks) {
      for (int64_t pitch = block; pitch <= block + 3; ++pitch) {
        const TileGrid grid{block * blocks, 16, block, kMostDepthBytes, pitch};
        if (!grid.fits()) continue;
        ++fitting;
        Check(grid);
        int64_t next = 0;  // row of sums, made by one row of a tile
        for (int i = 0; i < grid.rows(); ++i) {
          for (int64_t r = 0; r < grid.RowsOf(i); ++r) {
            const int64_t row = grid.SumRow(i, r);
            if (row < 0) continue;
            EXPECT_EQ(row, next++);
            EXPECT_EQ(grid.FirstRow(i) + r, row / block * pitch + row % block);
          }
        }
        EXPECT_EQ(next, grid.m);
      }
    }
  }
  EXPECT_GT(fitting, 8 * 4 * 8);
  EXPECT_EQ((TileGrid{49, 16, 7, 64, 9}.rows()), 4);
  EXPECT_EQ((TileGrid{49, 16, 7}.rows()), 7);
}

// Then one configuration serves all of them.
TEST(TileGridTest, WholeTilesAreConfiguredAlike) {
  const TileGrid::Bytes whole = TileGrid{32, 32}.Configuration();
  EXPECT_EQ((TileGrid{64, 16}.Configuration()), whole);
  EXPECT_EQ((TileGrid{16, 48}.Configuration()), whole);
  EXPECT_NE((TileGrid{24, 32}.Configuration()), whole);
  for (int64_t depth = 4; depth <= kMostDepthBytes; depth += 4) {
    const auto configuration = [&](int64_t m, int64_t n) { return TileGrid{m, n, 0, depth}.Configuration(); };
    for (const auto& [m, n] : {std::pair{16, 16}, {16, 32}, {32, 16}, {48, 16}, {64, 16}})
      EXPECT_EQ(configuration(m, n), configuration(32, 32))
          << m << "x" << n << ", " << depth << " bytes deep";
  }
}

}  // namespace
}  // namespace mycc
