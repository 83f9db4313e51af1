// Statistics over the seeds of a simulation: medians with their intervals, and what sampling at random is
// expected to find. Pure functions.
#pragma once

#include <vector>

namespace mycc {

// A median of several values with its 95 % confidence interval, which holds for any distribution.
struct MedianBand {
  double median = 0, low = 0, high = 0;
};

// Linear interpolation between the order statistics; an infinite neighbour makes it infinite. REQUIRES: at
// least one value, none of them NaN, 0 <= q <= 1.
double Quantile(std::vector<double> values, double q);

// The interval's ends are order statistics, by the binomial distribution of the number of values below the
// true median. Below six values no order statistics cover 95 %, and the ends are the extremes. REQUIRES: as
// above.
MedianBand MedianWithBand(std::vector<double> values);

// The interval's ends as ranks among `count` sorted values, counted from 0.
struct RankRange {
  int low = 0, high = 0;
};
RankRange MedianRanks(int count);

double Mean(const std::vector<double>& values);
// 0 where one value is 0. REQUIRES: at least one value, none negative.
double GeometricMean(const std::vector<double>& values);

// The best of a number of draws without replacement, all equally likely: known exactly.
struct BestOfDraws {
  double mean = 0, median = 0;
};
// `descending`: the value of each item, the best first. REQUIRES: 1 <= draws <= number of items.
BestOfDraws ExpectedBest(const std::vector<double>& descending, int draws);

// The least number of draws that find one of `good` items among `items` with a probability of one half or
// more; infinite where there are none.
double DrawsToFind(int items, int good);

}  // namespace mycc
