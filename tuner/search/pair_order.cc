#include "tuner/search/pair_order.h"

#include <algorithm>
#include <cstdint>

namespace mycc {
namespace {

// Counts of ranks, by prefix: a Fenwick tree.
class RankCounts {
 public:
  explicit RankCounts(size_t ranks) : sums_(ranks + 1, 0) {}

  void Add(size_t rank) {
    for (size_t i = rank + 1; i < sums_.size(); i += i & -i) ++sums_[i];
  }
  // How many were added of the ranks below `rank`.
  int64_t Below(size_t rank) const {
    int64_t sum = 0;
    for (size_t i = rank; i > 0; i -= i & -i) sum += sums_[i];
    return sum;
  }

 private:
  std::vector<int64_t> sums_;
};

}  // namespace

PairOrder CountPairs(const std::vector<std::pair<double, double>>& rows) {
  std::vector<double> predicted;
  for (const auto& row : rows) predicted.push_back(row.first);
  std::ranges::sort(predicted);
  predicted.erase(std::unique(predicted.begin(), predicted.end()), predicted.end());
  // By measurement, each with its rank among the predictions.
  std::vector<std::pair<double, size_t>> measured;
  for (const auto& row : rows) {
    const auto at = std::ranges::lower_bound(predicted, row.first);
    measured.emplace_back(row.second, static_cast<size_t>(at - predicted.begin()));
  }
  std::ranges::sort(measured);

  PairOrder order;
  RankCounts faster(predicted.size());  // rows that were measured faster than those from `first` on
  for (size_t first = 0, last = 0; first < measured.size(); first = last) {
    while (last < measured.size() && measured[last].first == measured[first].first) ++last;
    for (size_t i = first; i < last; ++i) {
      const size_t rank = measured[i].second;
      const int64_t below = faster.Below(rank), equal = faster.Below(rank + 1) - below;
      order.right += static_cast<double>(below) + 0.5 * static_cast<double>(equal);
      order.pairs += static_cast<double>(first);
    }
    for (size_t i = first; i < last; ++i) faster.Add(measured[i].second);
  }
  return order;
}

}  // namespace mycc
