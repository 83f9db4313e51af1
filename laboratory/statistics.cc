#include "laboratory/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace mycc {

double Quantile(std::vector<double> values, double q) {
  MYCC_CHECK(!values.empty()) << "a quantile of nothing";
  std::ranges::sort(values);
  const double place = q * static_cast<double>(values.size() - 1);
  const size_t below = static_cast<size_t>(std::floor(place));
  const double share = place - static_cast<double>(below);
  if (share == 0) return values[below];
  if (std::isinf(values[below + 1])) return values[below + 1];
  return values[below] + share * (values[below + 1] - values[below]);
}

RankRange MedianRanks(int count) {
  constexpr double kTail = 0.025;
  // P(fewer than `rank` of the values lie below the median) grows with the rank; the last one for which it is
  // small enough is the lower end.
  double probability = std::exp2(-count), sum = probability;
  int rank = 0;
  while (rank < count / 2 && sum <= kTail) {
    ++rank;
    probability *= static_cast<double>(count - rank + 1) / rank;
    sum += probability;
  }
  const int low = std::max(0, rank - 1);
  return {low, count - 1 - low};
}

MedianBand MedianWithBand(std::vector<double> values) {
  MYCC_CHECK(!values.empty()) << "a median of nothing";
  std::ranges::sort(values);
  const RankRange ranks = MedianRanks(static_cast<int>(values.size()));
  return {Quantile(values, 0.5), values[ranks.low], values[ranks.high]};
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double GeometricMean(const std::vector<double>& values) {
  MYCC_CHECK(!values.empty()) << "a geometric mean of nothing";
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

BestOfDraws ExpectedBest(const std::vector<double>& descending, int draws) {
  const int items = static_cast<int>(descending.size());
  MYCC_CHECK(1 <= draws && draws <= items) << draws << " draws of " << items;
  BestOfDraws best;
  double missed = 1;  // the probability that none of the items so far was drawn
  bool past_median = false;
  for (int i = 0; i < items && missed > 0; ++i) {
    const double also_missed = missed * std::max(0, items - draws - i) / (items - i);
    best.mean += descending[i] * (missed - also_missed);
    missed = also_missed;
    if (!past_median && missed <= 0.5) best.median = descending[i];
    past_median = missed <= 0.5;
  }
  return best;
}

double DrawsToFind(int items, int good) {
  if (good <= 0) return std::numeric_limits<double>::infinity();
  double missed = 1;
  int draws = 0;
  while (missed > 0.5) {
    missed *= static_cast<double>(std::max(0, items - good - draws)) / (items - draws);
    ++draws;
  }
  return draws;
}

}  // namespace mycc
