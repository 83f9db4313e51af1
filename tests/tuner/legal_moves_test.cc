// Moves between legal points, also where few points are legal.
#include "tuner/search/legal_moves.h"

#include <algorithm>
#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/synthetic_space.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

const std::vector<int64_t> kDigits = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

// Legal: 0000, 1111, ... 9999. Drawing finds one in a thousand.
std::vector<Sketch> RepeatedDigits(int decisions = 4) {
  std::vector<Decision> digits;
  for (int d = 0; d < decisions; ++d) digits.push_back({absl::StrCat("d", d), kDigits});
  return {SketchOf("digits", digits, [](const Choice& c) {
    return std::ranges::all_of(c, [&](int digit) { return digit == c[0]; });
  })};
}

TEST(LegalMovesTest, RandomPointsOfAThinSpaceAreEquallyLikely) {
  const std::vector<Sketch> sketches = RepeatedDigits();
  const LegalMoves moves(sketches);
  Rng rng(1);
  std::map<int, int> counts;
  for (int i = 0; i < 2000; ++i) ++counts[moves.Random(&rng).choice[0]];
  ASSERT_EQ(counts.size(), 10u);
  for (const auto& [digit, count] : counts) EXPECT_NEAR(count, 200, 60) << digit;
}

TEST(LegalMovesTest, LinesAreOfLegalChoices) {
  const std::vector<Sketch> sketches = {SketchOf("odd", {{"a", kDigits}, {"b", kDigits}},
                                                 [](const Choice& c) { return (c[0] + c[1]) % 2 == 1; })};
  const LegalMoves moves(sketches);
  EXPECT_THAT(moves.Line({0, {3, 4}}, 1), ElementsAre(0, 2, 4, 6, 8));
}

TEST(LegalMovesTest, IsolatedPointsHaveNeighboursToo) {
  const std::vector<Sketch> pairs = RepeatedDigits(2), quadruples = RepeatedDigits(4);
  std::vector<Choice> near;
  for (const Point& point : LegalMoves(pairs).Around({0, {4, 4}})) near.push_back(point.choice);
  EXPECT_EQ(near.size(), 9u) << "all others differ in two decisions";
  near.clear();
  for (const Point& point : LegalMoves(quadruples).Around({0, {4, 4, 4, 4}})) near.push_back(point.choice);
  EXPECT_THAT(near, UnorderedElementsAre(Choice{3, 3, 3, 3}, Choice{5, 5, 5, 5}));
  const std::vector<Sketch> one = {SketchOf("one", {{"a", {1}}})};
  EXPECT_TRUE(LegalMoves(one).Around({0, {0}}).empty());
}

TEST(LegalMovesTest, IllegalTargetsAreFittedTowardsALegalPoint) {
  const std::vector<Sketch> sketches = {SketchOf("sum", {{"a", kDigits}, {"b", kDigits}, {"c", kDigits}},
                                                 [](const Choice& c) { return c[0] + c[1] + c[2] <= 10; })};
  const LegalMoves moves(sketches);
  Rng rng(1);
  EXPECT_EQ(moves.Fit({0, {5, 3, 2}}, {0, {0, 0, 0}}, &rng).choice, Choice({5, 3, 2}));
  for (int i = 0; i < 20; ++i) {
    const Point fitted = moves.Fit({0, {9, 9, 1}}, {0, {0, 0, 0}}, &rng);
    EXPECT_TRUE(sketches[0].space.Legal(fitted.choice));
    EXPECT_GE(moves.Distance(fitted, {0, {0, 0, 0}}), 9) << "a nine is kept";
  }
  const std::vector<Sketch> thin = RepeatedDigits();
  EXPECT_EQ(LegalMoves(thin).Fit({0, {7, 7, 7, 8}}, {0, {0, 0, 0, 0}}, &rng).choice, Choice({7, 7, 7, 7}))
      << "no way from here to there is legal: the nearest of all";
}

TEST(LegalMovesTest, SmallSpacesAreCounted) {
  const std::vector<Sketch> sketches = RepeatedDigits();
  const LegalMoves moves(sketches);
  EXPECT_EQ(moves.CountUpTo(10), 10);
  EXPECT_EQ(moves.CountUpTo(9), std::nullopt);
  EXPECT_EQ(moves.All().size(), 10u);
  const std::vector<Sketch> large = RepeatedDigits(8);
  EXPECT_EQ(LegalMoves(large).CountUpTo(1000), std::nullopt);
  Rng rng(1);
  EXPECT_TRUE(large[0].space.Legal(LegalMoves(large).Random(&rng).choice));
}

}  // namespace
}  // namespace mycc
