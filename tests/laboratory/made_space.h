// A small recorded space with a known cost surface, made by the tests themselves.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "laboratory/recorded_space.h"
#include "tuner/search/rng.h"

namespace mycc {

// block: 8 ordered values; tile: 6; layout: 3 names; cached: a switch. Large blocks with large tiles are no
// part of the space, and the largest tiles with one layout fail. `speed` scales the device, `taste` moves its
// best block.
inline RecordedSpace MadeSpace(const std::string& device = "gpu", double speed = 1, int taste = 4) {
  RecordedSpace space;
  space.name = "made";
  space.device = device;
  space.parameters = {{"block", {"1", "2", "4", "8", "16", "32", "64", "128"}},
                      {"tile", {"1", "2", "3", "4", "6", "8"}},
                      {"layout", {"row", "column", "blocked"}, false},
                      {"cached", {"false", "true"}, false}};
  Rng rng(static_cast<uint64_t>(taste));
  for (int block = 0; block < 8; ++block) {
    for (int tile = 0; tile < 6; ++tile) {
      for (int layout = 0; layout < 3; ++layout) {
        for (int cached = 0; cached < 2; ++cached) {
          if (block + tile > 10) continue;
          RecordedConfiguration& made = space.configurations.emplace_back();
          made.choices = {block, tile, layout, cached};
          made.compile_seconds = 0.5 + 0.1 * tile;
          const double off_block = block - taste, off_tile = tile - 3;
          double seconds = 1e-3 / speed * (1 + 0.15 * off_block * off_block + 0.1 * off_tile * off_tile);
          seconds *= layout == 0 ? 1.3 : layout == 1 ? 1.0 : 1.1;
          seconds *= cached == 1 ? 1.0 : 1.2;
          if (tile == 5 && layout == 2) {
            made.failure = "compile";
            continue;
          }
          for (int r = 0; r < 7; ++r) made.run_seconds.push_back(seconds * (1 + 0.05 * rng.Unit()));
        }
      }
    }
  }
  return space;
}

}  // namespace mycc
