// Chooses the default register tile and blocks of a contraction: the cheapest by a model of one core, its
// caches and the busiest thread. Pure.
#pragma once

#include <cstdint>

#include "codegen/target/target.h"

namespace mycc {

// Vectors that a tile may be wide.
inline constexpr int64_t kVectorsInTile[] = {1, 2, 3, 4, 6, 8, 12};
inline constexpr int64_t kMostRowsInTile = 28;
inline constexpr int64_t kMostTiles = 5;  // of tile registers, along rows

// Vector registers that a tile may fill.
int64_t TileRegisters(const Target& target);

// Whether a tile of `mr` rows x `nv` vectors keeps to TileRegisters: accumulators, one vector of b for each
// column, one broadcast.
bool FitsRegisters(int64_t mr, int64_t nv, int64_t registers);

// Whether `mr` rows x `nv` vectors of sums, the tiles of the operand that has fewer, and two for the other
// one's to pass through, are no more than AMX's eight tile registers.
bool FitsTileRegisters(int64_t mr, int64_t nv);

struct TileChoice {
  int64_t mr, nv;     // rows, vectors
  int64_t lines = 1;  // of an image, with `mr` pixels each
};
// Cycles for one step of k over all tiles of m x n elements, the narrower ones at the edges included.
double StepCycles(const TileChoice& tile, int64_t m, int64_t n, int64_t lanes, const Target& target);
// For a product of m x n elements, `lanes` of them in a vector, in tiles of up to `most_rows`.
TileChoice BestTile(int64_t m, int64_t n, int64_t lanes, int64_t most_rows, const Target& target);

// In tile registers: two by two of them where there are rows and columns for it.
TileChoice BestTileRegisters(int64_t m, int64_t n);
// For a window over `m` pixels of a line, which come from L1 for all taps but the first while the weights
// come from L2: up to five by one, of up to `most_lines` lines.
TileChoice BestWindowRegisters(int64_t m, int64_t n, int64_t most_lines);

// Blocks are chosen for these: m rows and n columns in tiles, in `other` independent products of depth k.
struct BlockProblem {
  int64_t m, n, k, other;
  int64_t mr, nr;
  int64_t bytes;   // of an element
  int64_t max_mt;  // more rows would leave L2
};
// Tiles in a block, along rows and columns; and the cycles of the busiest thread for its blocks.
struct BlockChoice {
  int64_t mt, nt;
  double cycles;
};
BlockChoice BestBlock(const BlockProblem& problem, const Target& target);
// In tile registers, which are fed from L2: a's rows stay there while b's panels pass by.
BlockChoice BestTileBlock(const BlockProblem& problem, const Target& target);

}  // namespace mycc
