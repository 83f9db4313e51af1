// A tile of sums of products whose operands both lie along the depth: vector lanes run along it, and are
// added up at the end. For rules; writes trace steps. Pure.
//
//   blocks of rows and columns:
//     depth: unrolled rows, columns, vectors: partial[row, column, lanes] += a[row, lanes] * b[column, lanes]
//     unrolled rows, columns: acc[row, column] = sum of lanes of partial
#pragma once

#include <string>
#include <vector>

#include "tuner/space/part.h"

namespace mycc {

struct DotTile {
  std::string block;                // of the sum
  std::string m, n;                 // its loops over rows and columns; m empty: there is one row
  std::vector<std::string> outer;   // its other loops, outermost first
  std::vector<std::string> depths;  // its reductions, outermost first
  int64_t mr = 1, nr = 1;           // rows and columns of a tile
  int64_t vectors = 1;              // of a partial sum
  int lanes = 1;                    // of a vector
};

// Sums, and a vector of each row and column.
bool FitsDotRegisters(int64_t mr, int64_t nr, int64_t vectors, int64_t registers);

// Makes the partial sums a block of their own. REQUIRES: the block is where it was made.
void FactorDotTile(const DotTile& tile, TraceBuilder* b);
// Cuts the nest into tiles, wherever it has been moved since. Returns the loops around a tile, outermost
// first.
std::vector<std::string> CutDotTile(const DotTile& tile, TraceBuilder* b);
// Moves partial sums and accumulators to the last of `blocks`, what CutDotTile returned. An epilogue follows.
void EmitDotPartials(const DotTile& tile, const std::vector<std::string>& blocks, TraceBuilder* b);
// Unrolls the tile, and adds up lanes: the last steps.
void BindDotTile(const DotTile& tile, TraceBuilder* b);

}  // namespace mycc
