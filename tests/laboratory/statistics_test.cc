// Medians with their intervals against tables and trials, and the best of draws against all subsets.
#include "laboratory/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuner/search/rng.h"

namespace mycc {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(StatisticsTest, QuantilesInterpolate) {
  EXPECT_EQ(Quantile({3, 1, 2}, 0.5), 2);
  EXPECT_EQ(Quantile({1, 2, 3, 4}, 0.5), 2.5);
  EXPECT_EQ(Quantile({5}, 0.975), 5);
  EXPECT_EQ(Quantile({0, 10}, 0.25), 2.5);
  EXPECT_EQ(Quantile({1, kInfinity}, 0.5), kInfinity);
  EXPECT_EQ(Quantile({1, 2, kInfinity}, 0.5), 2);
  EXPECT_EQ(Quantile({kInfinity, kInfinity, 1}, 0.5), kInfinity);
}

// Tables of the sign test: for 50 values the 18th and the 33rd, for 20 the 6th and the 15th, for 6 the
// extremes.
TEST(StatisticsTest, TheMediansIntervalIsThatOfTheSignTest) {
  EXPECT_EQ(MedianRanks(50).low, 17);
  EXPECT_EQ(MedianRanks(50).high, 32);
  EXPECT_EQ(MedianRanks(20).low, 5);
  EXPECT_EQ(MedianRanks(20).high, 14);
  EXPECT_EQ(MedianRanks(6).low, 0);
  EXPECT_EQ(MedianRanks(6).high, 5);
  EXPECT_EQ(MedianRanks(1).low, 0);
  EXPECT_EQ(MedianRanks(1).high, 0);
}

TEST(StatisticsTest, TheMediansIntervalCoversTheTruth) {
  Rng rng(1);
  int covered = 0;
  constexpr int kRounds = 2000;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> values;
    for (int i = 0; i < 50; ++i) values.push_back(std::exp(3 * rng.Unit()));
    const MedianBand band = MedianWithBand(values);
    EXPECT_LE(band.low, band.median);
    EXPECT_LE(band.median, band.high);
    covered += band.low <= std::exp(1.5) && std::exp(1.5) <= band.high;
  }
  EXPECT_GE(covered, 0.94 * kRounds);
  EXPECT_LE(covered, 0.985 * kRounds);  // wider than needed tells less
}

TEST(StatisticsTest, Means) {
  EXPECT_EQ(Mean({1, 2, 6}), 3);
  EXPECT_NEAR(GeometricMean({0.5, 2, 8}), 2, 1e-12);
  EXPECT_EQ(GeometricMean({0, 2}), 0);
}

// All subsets of a few items, counted.
TEST(StatisticsTest, TheBestOfDrawsIsThatOfAllSubsets) {
  const std::vector<double> values = {1.0, 0.9, 0.9, 0.5, 0.25, 0, 0};
  const unsigned n = static_cast<unsigned>(values.size());
  for (int draws = 1; draws <= static_cast<int>(n); ++draws) {
    std::vector<double> bests;
    for (unsigned subset = 0; subset < (1u << n); ++subset) {
      if (__builtin_popcount(subset) != draws) continue;
      double best = 0;
      for (unsigned i = 0; i < n; ++i) best = (subset >> i & 1) != 0 ? std::max(best, values[i]) : best;
      bests.push_back(best);
    }
    std::ranges::sort(bests);
    const BestOfDraws expected = ExpectedBest(values, draws);
    EXPECT_NEAR(expected.mean, Mean(bests), 1e-12) << draws << " draws";
    EXPECT_GE(expected.median, bests[(bests.size() - 1) / 2]) << draws << " draws";
    EXPECT_LE(expected.median, bests[bests.size() / 2]) << draws << " draws";
  }
}

TEST(StatisticsTest, DrawsToFind) {
  EXPECT_EQ(DrawsToFind(10, 10), 1);
  EXPECT_EQ(DrawsToFind(10, 5), 1);
  EXPECT_EQ(DrawsToFind(10, 1), 5);
  EXPECT_EQ(DrawsToFind(1000000, 10000), 69);  // log(0.5) / log(0.99), rounded up
  EXPECT_EQ(DrawsToFind(10, 0), kInfinity);
}

}  // namespace
}  // namespace mycc
