// The trimmed mean: exact on small sets, blind to strays, and its interval as often right as it claims.
#include "base/trimmed_mean.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace mycc {
namespace {

TEST(TrimmedMeanTest, OneValueIsItsOwnInterval) {
  const TrimmedMean mean = TrimmedMeanOf({3});
  EXPECT_EQ(mean.mean, 3);
  EXPECT_EQ(mean.low, 3);
  EXPECT_EQ(mean.high, 3);
}

TEST(TrimmedMeanTest, FewValuesAreAllKept) {
  // The standard error of 1, 2, 3, 4 is 0.6455, and the quantile of 3 degrees 3.182.
  const TrimmedMean mean = TrimmedMeanOf({4, 1, 3, 2});
  EXPECT_EQ(mean.mean, 2.5);
  EXPECT_NEAR(mean.low, 2.5 - 3.182 * 0.6455, 1e-3);
  EXPECT_NEAR(mean.high, 2.5 + 3.182 * 0.6455, 1e-3);
}

TEST(TrimmedMeanTest, AFifthMayStrayAtEitherEnd) {
  const TrimmedMean mean = TrimmedMeanOf({1.0, 1.1, 0.9, 1.0, 1.1, 0.9, 1.0, 1.0, 1000, -1000});
  EXPECT_NEAR(mean.mean, 1.0, 1e-9);
  EXPECT_LT(mean.high, 1.2);
  EXPECT_GT(mean.low, 0.8);
}

TEST(TrimmedMeanTest, GeometricMeansAreOfFactors) {
  const TrimmedMean mean = TrimmedGeometricMeanOf({0.5, 2.0, 1.0});
  EXPECT_NEAR(mean.mean, 1.0, 1e-12);
  EXPECT_NEAR(mean.low * mean.high, 1.0, 1e-12);
}

// Timings at placements: mostly alike, some of them five percent slower.
double MissedShare(int count, double often) {
  std::mt19937 random(11);
  std::normal_distribution<double> noise(0, 0.003);
  std::bernoulli_distribution slower(often), sign(0.5);
  constexpr int kRuns = 4000;
  int missed = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<double> values;
    for (int i = 0; i < count; ++i)
      values.push_back(std::exp(noise(random) + (slower(random) ? (sign(random) ? 0.05 : -0.05) : 0)));
    const TrimmedMean mean = TrimmedGeometricMeanOf(values);
    missed += !(mean.low <= 1 && 1 <= mean.high);
  }
  return static_cast<double>(missed) / kRuns;
}

TEST(TrimmedMeanTest, TheIntervalHoldsTheTruthInNineteenOfTwentyCases) {
  for (const int count : {4, 6, 8, 12, 16, 40}) {
    for (const double often : {0.0, 0.1, 0.3}) {
      SCOPED_TRACE(testing::Message() << count << " values, " << often << " of them slower or faster");
      EXPECT_LT(MissedShare(count, often), 0.062);
    }
    EXPECT_GT(MissedShare(count, 0), 0.03) << "it need not be wider, of " << count;
  }
}

}  // namespace
}  // namespace mycc
