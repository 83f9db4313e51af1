// Tiles over several axes at once, such as the rows and columns of an image's pixels. Pure. A search asks for
// the same few tiles thousands of times, so each thread remembers its answers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"

namespace mycc {

// The extents of a tile, one for each axis of a side.
using AxisTile = std::vector<int64_t>;

// The tile of `size` elements that costs least; of equal ones that with larger inner axes. Its extents are
// powers of two, but for the first one, with which an odd factor of the size stays (192 is 3 * 64). `cost`
// gives nullopt for a tile that is not wanted. Empty where none is, or without axes.
AxisTile CheapestTile(const std::vector<int64_t>& extents, int64_t size,
                      absl::FunctionRef<std::optional<double>(const AxisTile& tile)> cost);

// `make()`, which is a function of the question: of the extents, the size, and what the cost depends on.
// Questions of different costs differ.
AxisTile RememberedTile(const std::vector<int64_t>& question, absl::FunctionRef<AxisTile()> make);

// Tiles to cover the extents.
int64_t TilesOf(const std::vector<int64_t>& extents, const AxisTile& tile);

}  // namespace mycc
