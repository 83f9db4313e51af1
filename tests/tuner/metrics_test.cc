// The measures of prediction quality.
#include "tuner/cost/metrics.h"

#include <cmath>

#include "gtest/gtest.h"

namespace mycc {
namespace {

TEST(MetricsTest, PairsWithinGroupsAlone) {
  // Group a: two of three pairs right. Group b: right, although between the groups everything is wrong.
  const OrderMetrics metrics =
      EvaluateOrder({{1, 1, "a"}, {3, 2, "a"}, {2, 3, "a"}, {-5, 8, "b"}, {-4, 9, "b"}, {0, 0, "alone"}});
  EXPECT_EQ(metrics.rows, 5);
  EXPECT_DOUBLE_EQ(metrics.pairwise_accuracy, 0.75);
}

TEST(MetricsTest, RecallOfTheFastestTenth) {
  std::vector<Predicted> rows;
  for (int i = 0; i < 20; ++i) rows.push_back({static_cast<double>(i), static_cast<double>(i), "a"});
  EXPECT_EQ(EvaluateOrder(rows).recall_at_k, 1);
  rows[0].predicted = 100;
  EXPECT_EQ(EvaluateOrder(rows).recall_at_k, 0.5);
}

TEST(MetricsTest, AGroupsMeanErrorDoesNotCount) {
  EXPECT_DOUBLE_EQ(EvaluateOrder({{7, 1, "a"}, {8, 2, "a"}}).rmse, 0);
  EXPECT_DOUBLE_EQ(EvaluateOrder({{7, 1, "a"}, {10, 2, "a"}}).rmse, 1);
}

TEST(MetricsTest, NothingToCompare) {
  EXPECT_EQ(EvaluateOrder({}).rows, 0);
  EXPECT_EQ(EvaluateOrder({{1, 1, "a"}}).pairwise_accuracy, 0);
  EXPECT_EQ(EvaluateOrder({{1, 1, "a"}, {2, 1, "a"}}).pairwise_accuracy, 0.5);
}

TEST(MetricsTest, PairsThatHardlyDifferAreLeftOut) {
  // The first two differ by 2 %, in the wrong order; the third is slower than both.
  const std::vector<Predicted> rows = {{2.0, 0.0, "a"}, {1.0, std::log(1.02), "a"}, {1.5, 1.0, "a"}};
  EXPECT_EQ(ClearPairs(rows, 0.03), 0.5);
  EXPECT_NEAR(ClearPairs(rows, 0.01), 1.0 / 3, 1e-12);
  EXPECT_EQ(ClearPairs({rows[0]}, 0.03), 0.5);
}

TEST(MetricsTest, BestOfTopIsOneWhenTheBestIsAmongThem) {
  const std::vector<Predicted> rows = {{3.0, 0.0, "a"}, {1.0, std::log(2.0), "a"}, {2.0, std::log(4.0), "a"}};
  EXPECT_NEAR(BestOfTop(rows, 1), 0.5, 1e-12);
  EXPECT_NEAR(BestOfTop(rows, 2), 0.5, 1e-12);
  EXPECT_EQ(BestOfTop(rows, 3), 1);
  EXPECT_EQ(BestOfTop(rows, 9), 1);
}

}  // namespace
}  // namespace mycc
