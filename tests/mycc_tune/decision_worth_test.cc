// The worth of decisions, on a few made-up candidates.
#include "mycc_tune/decision_worth.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace mycc {
namespace {

const std::vector<DecidedCandidate>& Candidates() {
  static const auto& candidates = *new std::vector<DecidedCandidate>{
      {0, "tile", {{"a", 2}, {"b", 1}, {"same", 7}}, 4e-3},
      {0, "tile", {{"a", 4}, {"b", 1}, {"same", 7}}, 2e-3},
      {0, "tile", {{"a", 4}, {"b", 2}, {"same", 7}}, 0},
      {0, "tile", {{"a", 16}, {"b", 2}, {"same", 7}}, 3e-3},
      {0, "row", {{"parts", 3}}, 5e-3},
      {1, "row", {{"parts", 3}}, 7e-3},
  };
  return candidates;
}

TEST(DecisionWorthTest, EachValueHasItsBestAndTheBestWithoutIt) {
  const std::vector<DecisionWorth> worths = WorthOfDecisions(Candidates());
  ASSERT_EQ(worths.size(), 3u);  // neither `same` nor `parts`, nor the second task, had a choice
  EXPECT_EQ(worths[0].decision, "sketch");
  EXPECT_EQ(worths[0].chosen, "tile");
  EXPECT_DOUBLE_EQ(worths[0].without, 2.5);
  EXPECT_EQ(worths[1].decision, "a");
  EXPECT_EQ(worths[1].chosen, "4");
  EXPECT_DOUBLE_EQ(worths[1].without, 1.5);
  EXPECT_EQ(worths[2].decision, "b");
  EXPECT_DOUBLE_EQ(worths[2].without, 1.5);

  const std::vector<DecisionValue>& values = worths[1].values;
  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(values[0].value, "4");
  EXPECT_EQ(values[0].candidates, 2);
  EXPECT_EQ(values[0].failed, 1);
  EXPECT_DOUBLE_EQ(values[0].best_seconds, 2e-3);
  EXPECT_DOUBLE_EQ(values[0].best_without_seconds, 3e-3);
  EXPECT_EQ(values[1].value, "16");
  EXPECT_EQ(values[2].value, "2");
}

TEST(DecisionWorthTest, ACandidateOfAnotherSketchIsOneWithoutTheValue) {
  const std::vector<DecisionWorth> worths = WorthOfDecisions({
      {0, "tile", {{"a", 2}}, 2e-3},
      {0, "tile", {{"a", 4}}, 9e-3},
      {0, "row", {{"parts", 3}}, 3e-3},
  });
  ASSERT_EQ(worths.size(), 2u);
  EXPECT_EQ(worths[0].decision, "a");
  EXPECT_DOUBLE_EQ(worths[0].without, 1.5);
}

TEST(DecisionWorthTest, TheOrderOfResultsChangesNothing) {
  std::vector<DecidedCandidate> candidates = Candidates();
  candidates.push_back({0, "tile", {{"a", 2}, {"b", 3}, {"same", 7}}, 2e-3});  // as fast as the best
  const std::vector<DecisionWorth> expected = WorthOfDecisions(candidates);
  std::ranges::reverse(candidates);
  const std::vector<DecisionWorth> found = WorthOfDecisions(candidates);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].decision, expected[i].decision);
    EXPECT_EQ(found[i].chosen, expected[i].chosen);
    EXPECT_EQ(found[i].without, expected[i].without);
  }
}

TEST(DecisionWorthTest, WithoutAValidResultNothingIsKnown) {
  const std::vector<DecisionWorth> worths =
      WorthOfDecisions({{0, "tile", {{"a", 2}}, 0}, {0, "tile", {{"a", 4}}, 0}});
  ASSERT_EQ(worths.size(), 1u);
  EXPECT_EQ(worths[0].chosen, "");
  EXPECT_EQ(worths[0].without, 0);
  EXPECT_EQ(worths[0].values[0].best_seconds, 0);
}

}  // namespace
}  // namespace mycc
