// The random forest: it learns a class from tables, always alike.
#include "tuner/cost/forest.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "tuner/search/rng.h"

namespace mycc {
namespace {

struct LabelledRows {
  NumberTable table{3, {}};
  std::vector<float> labels, weights;
};

// Rows of the class have a first number above 0.6 and a second one below 0.5; the third says nothing.
LabelledRows Corner(uint64_t seed, int rows) {
  Rng rng(seed);
  LabelledRows made;
  for (int i = 0; i < rows; ++i) {
    float numbers[3];
    for (float& number : numbers) made.table.values.push_back(number = static_cast<float>(rng.Unit()));
    made.labels.push_back(numbers[0] > 0.6 && numbers[1] < 0.5);
    made.weights.push_back(1);
  }
  return made;
}

TEST(ForestTest, LearnsAClass) {
  const LabelledRows known = Corner(1, 300), asked = Corner(2, 500);
  Forest forest;
  const auto odds = forest.Classify(known.table, known.labels, known.weights, asked.table);
  ASSERT_EQ(odds.size(), 500u);
  int right = 0;
  for (size_t i = 0; i < odds.size(); ++i) {
    EXPECT_TRUE(odds[i] >= 0 && odds[i] <= 1);
    right += (odds[i] > 0.5) == (asked.labels[i] > 0.5);
  }
  EXPECT_GT(right, 470);
}

TEST(ForestTest, IsAFunctionOfItsTables) {
  const LabelledRows known = Corner(1, 60), other = Corner(3, 80), asked = Corner(2, 50);
  Forest forest;
  const auto first = forest.Classify(known.table, known.labels, known.weights, asked.table);
  const auto others = forest.Classify(other.table, other.labels, other.weights, asked.table);
  EXPECT_NE(first, others);
  EXPECT_EQ(forest.Classify(known.table, known.labels, known.weights, asked.table), first);
  EXPECT_EQ(Forest().Classify(known.table, known.labels, known.weights, asked.table), first);
  EXPECT_NE(Forest({.seed = 5}).Classify(known.table, known.labels, known.weights, asked.table), first);
}

TEST(ForestTest, FewRowsOneClassAndMissingNumbers) {
  const float missing = std::numeric_limits<float>::quiet_NaN();
  const NumberTable one{2, {1, missing}}, asked{2, {1, 2, missing, missing}};
  Forest forest;
  EXPECT_EQ(forest.Classify(one, {0}, {1}, asked), (std::vector<double>{0, 0}));
  const auto likely = forest.Classify(one, {1}, {1}, asked);
  EXPECT_GT(likely[0], 0.3);
}

TEST(ForestTest, WeightsCount) {
  const NumberTable known{1, {0, 0, 0, 0, 0, 0, 0, 0}}, asked{1, {0}};
  const std::vector<float> labels = {1, 0, 1, 0, 1, 0, 1, 0};
  Forest forest;
  const double even = forest.Classify(known, labels, std::vector<float>(8, 1), asked)[0];
  const double more = forest.Classify(known, labels, {5, 1, 5, 1, 5, 1, 5, 1}, asked)[0];
  EXPECT_GT(more, even + 0.2);
}

}  // namespace
}  // namespace mycc
