#include "tuner/space/rules/cuda/persistent_order.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace mycc {

double TimeInFixedOrder(const std::vector<double>& tiles, int64_t workers) {
  std::vector<double> times(workers, 0);
  for (size_t tile = 0; tile < tiles.size(); ++tile) {
    const size_t round = tile / workers, place = tile % workers;
    times[round % 2 == 0 ? place : workers - 1 - place] += tiles[tile];
  }
  return *std::ranges::max_element(times);
}

double TimeWhenReady(const std::vector<double>& tiles, int64_t workers) {
  const std::vector<double> none(workers, 0);
  std::priority_queue<double, std::vector<double>, std::greater<>> ready(none.begin(), none.end());
  double last = 0;
  for (const double tile : tiles) {
    const double end = ready.top() + tile;
    ready.pop();
    ready.push(end);
    last = std::max(last, end);
  }
  return last;
}

}  // namespace mycc
