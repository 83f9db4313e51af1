// How evenly thread blocks share tiles of different lengths: the order of persistent blocks
// (codegen/passes/block_work.h) against that of the hardware. `tiles` has the time of each tile in order, in
// any unit, and results are in the same unit. `workers` is the number of blocks that run at once, at least 1.
// Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace mycc {

// The time until the last persistent block is done: block w takes tiles w, 2 * workers - 1 - w,
// 2 * workers + w and so on.
double TimeInFixedOrder(const std::vector<double>& tiles, int64_t workers);
// The time until the last tile is done when each is given to the block that is free first, as a GPU starts
// blocks that are not persistent.
double TimeWhenReady(const std::vector<double>& tiles, int64_t workers);

}  // namespace mycc
