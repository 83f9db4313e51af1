#include "tuner/space/rules/cuda/axis_tile.h"

#include <algorithm>
#include <map>

#include "tuner/space/rules/cuda/gpu.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {

AxisTile CheapestTile(const std::vector<int64_t>& extents, int64_t size,
                      absl::FunctionRef<std::optional<double>(const AxisTile& tile)> cost) {
  AxisTile best, tile(extents.size(), 1);
  double best_cost = 0;
  const auto choose = [&](size_t axis, int64_t left, const auto& self) -> void {
    if (axis == 0) {
      tile[0] = left;
      const std::optional<double> made = cost(tile);
      if (!made || (!best.empty() && *made >= best_cost)) return;
      best = tile;
      best_cost = *made;
      return;
    }
    // Larger inner tiles first, so that they win between equals.
    for (int64_t t = PowerAtMost(std::min(left, PowerAtLeast(extents[axis]))); t >= 1; t /= 2) {
      if (left % t != 0) continue;
      tile[axis] = t;
      self(axis - 1, left / t, self);
    }
  };
  if (!extents.empty()) choose(extents.size() - 1, size, choose);
  return best;
}

AxisTile RememberedTile(const std::vector<int64_t>& question, absl::FunctionRef<AxisTile()> make) {
  constexpr size_t kMost = 4096;
  thread_local std::map<std::vector<int64_t>, AxisTile> answers;
  const auto known = answers.find(question);
  if (known != answers.end()) return known->second;
  if (answers.size() >= kMost) answers.clear();
  return answers[question] = make();
}

int64_t TilesOf(const std::vector<int64_t>& extents, const AxisTile& tile) {
  int64_t tiles = 1;
  for (size_t a = 0; a < extents.size(); ++a) tiles *= CeilDiv(extents[a], tile[a]);
  return tiles;
}

}  // namespace mycc
