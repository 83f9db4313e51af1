// The median's interval: exact on small sets, and as often right as it claims on random ones.
#include "mycc/samples.h"

#include <gtest/gtest.h>

#include <random>

namespace mycc {
namespace {

TEST(SamplesTest, OneSampleIsItsOwnInterval) {
  const MedianInterval interval = MedianOf({3});
  EXPECT_EQ(interval.median, 3);
  EXPECT_EQ(interval.low, 3);
  EXPECT_EQ(interval.high, 3);
}

// The range of n samples misses the median in 2 of 2^n cases: 6.25 % of 5 samples, 3.1 % of 6.
TEST(SamplesTest, FewerThanSixClaimNoInterval) {
  EXPECT_FALSE(MedianOf({1, 2, 3, 4, 5}).is_confident());
  const MedianInterval six = MedianOf({1, 2, 3, 4, 5, 6});
  EXPECT_TRUE(six.is_confident());
  EXPECT_EQ(six.low, 1);
  EXPECT_EQ(six.high, 6);
}

TEST(SamplesTest, OrderDoesNotMatter) {
  EXPECT_EQ(MedianOf({5, 1, 3}).median, 3);
  EXPECT_EQ(MedianOf({4, 1, 3, 2}).median, 2.5);
}

TEST(SamplesTest, OneOutlierMovesNothingButTheFarEnd) {
  std::vector<double> samples(101, 1.0);
  samples[7] = 1000;
  const MedianInterval interval = MedianOf(samples);
  EXPECT_EQ(interval.median, 1);
  EXPECT_EQ(interval.high, 1);
  EXPECT_EQ(interval.relative_width(), 0);
}

TEST(SamplesTest, IntervalHoldsTheTrueMedian) {
  std::mt19937_64 random(3);
  std::exponential_distribution<double> waiting(1.0);
  int held = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<double> samples;
    for (int i = 0; i < 50; ++i) samples.push_back(waiting(random));
    const MedianInterval interval = MedianOf(samples);
    held += interval.low <= 0.6931 && 0.6931 <= interval.high;
  }
  EXPECT_GT(held, 1880);  // 94 %
  EXPECT_LT(held, 1990);  // and no wider than needed
}

TEST(Samples, AreTakenUntilTheMedianIsKnown) {
  const SamplingPlan plan = {0, 1};
  EXPECT_FALSE(IsEnough({1, 1}, plan, 5));
  EXPECT_TRUE(IsEnough({1, 2, 3}, plan, 1.5));
  EXPECT_FALSE(IsEnough({1, 2, 3}, plan, 0.5));
  EXPECT_FALSE(IsEnough({1, 2, 3, 1, 2, 3, 1, 2, 3}, plan, 0.5));
  EXPECT_TRUE(IsEnough({1, 1, 1, 1, 1, 1, 1, 1, 1}, plan, 0.5));
}

TEST(Samples, OrAsManyAsAreAskedFor) {
  EXPECT_FALSE(IsEnough({1, 1, 1}, {4, 1}, 100));
  EXPECT_TRUE(IsEnough({1, 2, 3, 9}, {4, 1}, 0));
}

}  // namespace
}  // namespace mycc
