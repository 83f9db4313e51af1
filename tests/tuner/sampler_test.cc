// Moves in a search space: each is legal, and together they reach the whole space.
#include "tuner/search/sampler.h"

#include <algorithm>
#include <map>
#include <set>

#include "gtest/gtest.h"
#include "tests/tuner/synthetic_space.h"

namespace mycc {
namespace {

std::vector<Sketch> SampledSketches() {
  return {SketchOf("tile", {{"m", {1, 2, 4, 8}}, {"n", {8, 16, 48}}, {"order", {0, 1, 2, 3}, false}},
                   [](const Choice& c) { return c[0] + c[1] < 4; }),
          SketchOf("copy", {{"vector", {1, 4, 8}}})};
}

bool Legal(const std::vector<Sketch>& sketches, const Point& point) {
  return sketches[point.sketch].space.Legal(point.choice);
}

TEST(SamplerTest, EveryMoveIsLegal) {
  const std::vector<Sketch> sketches = SampledSketches();
  const Sampler sampler(sketches);
  Rng rng(1);
  Point point = sampler.Random(&rng), other = point;
  for (int i = 0; i < 2000; ++i) {
    const Point random = sampler.Random(&rng);
    EXPECT_TRUE(Legal(sketches, random));
    point = sampler.Mutate(point, &rng);
    EXPECT_TRUE(Legal(sketches, point));
    if (const auto child = sampler.Crossover(point, random, &rng)) {
      EXPECT_TRUE(Legal(sketches, *child));
    }
    for (const Point& neighbour : sampler.Neighbours(point)) EXPECT_TRUE(Legal(sketches, neighbour));
    if (i % 100 == 0) point = random;
  }
}

TEST(SamplerTest, RandomPointsReachAllOfTheSpace) {
  const std::vector<Sketch> sketches = SampledSketches();
  const Sampler sampler(sketches);
  Rng rng(1);
  std::set<std::pair<int, Choice>> reached, all;
  for (int i = 0; i < 3000; ++i) {
    const Point point = sampler.Random(&rng);
    reached.emplace(point.sketch, point.choice);
  }
  sampler.Enumerate(0, sampler.size(),
                    [&](const Point& point) { return all.emplace(point.sketch, point.choice).second; });
  EXPECT_EQ(all.size(), 9u * 4 + 3);
  EXPECT_EQ(reached, all);
}

// One point in ten thousand is legal: drawing alone would not find it.
TEST(SamplerTest, TightConstraintsAreNoObstacle) {
  std::vector<int64_t> digits = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  std::vector<Decision> decisions;
  for (const char* name : {"a", "b", "c", "d"}) decisions.push_back({name, digits, false});
  const std::vector<Sketch> sketches = {SketchOf("tight", decisions, [](const Choice& c) {
    return c[0] == c[1] && c[1] == c[2] && c[2] == c[3] && c[0] == 0;
  })};
  const Sampler sampler(sketches);
  Rng rng(1);
  EXPECT_EQ(sampler.Random(&rng).choice, Choice({0, 0, 0, 0}));
  EXPECT_EQ(sampler.Mutate({0, {0, 0, 0, 0}}, &rng).choice, Choice({0, 0, 0, 0}));
  EXPECT_TRUE(sampler.Neighbours({0, {0, 0, 0, 0}}).empty());
}

TEST(SamplerTest, NeighboursDifferInOneDecision) {
  const std::vector<Sketch> sketches = {
      SketchOf("tile", {{"m", {1, 2, 4, 8, 16, 32}}, {"order", {0, 1, 2, 3}, false}, {"fixed", {7}}})};
  const Sampler sampler(sketches);
  std::vector<Choice> choices;
  for (const Point& point : sampler.Neighbours({0, {1, 3, 0}})) choices.push_back(point.choice);
  EXPECT_EQ(choices, (std::vector<Choice>{{0, 3, 0}, {2, 3, 0}, {3, 3, 0}, {1, 0, 0}, {1, 1, 0}, {1, 2, 0}}));
}

TEST(SamplerTest, AnyPrefixOfTheEnumerationIsSpread) {
  const std::vector<Sketch> sketches = {ContractionLikeSketch()};
  const Sampler sampler(sketches);
  std::map<int, int> by_first_decision;
  sampler.Enumerate(0, 900, [&](const Point& point) { return ++by_first_decision[point.choice[0]] > 0; });
  EXPECT_EQ(by_first_decision.size(), 9u);
}

TEST(SamplerTest, HugeSpacesSaturate) {
  std::vector<Decision> decisions(40, Decision{"d", {1, 2, 3, 4}});
  const std::vector<Sketch> sketches = {SketchOf("huge", decisions), SketchOf("huger", decisions)};
  const Sampler sampler(sketches);
  EXPECT_EQ(sampler.size(), int64_t{1} << 62);
  int visited = 0;
  EXPECT_EQ(sampler.Enumerate(0, 100, [&](const Point&) { return ++visited < 50; }), 50);
}

TEST(RngTest, IsTheSameEverywhere) {
  Rng rng(42, 7);
  EXPECT_EQ(rng.Next(), 2629513796856988447u);
  EXPECT_EQ(rng.Next(), 5740974342748858892u);
  EXPECT_NE(Rng(42, 7).Next(), Rng(42, 8).Next());
  EXPECT_NE(Rng(42, 7).Next(), Rng(43, 7).Next());
  int counts[6] = {};
  for (int i = 0; i < 6000; ++i) ++counts[rng.Below(6)];
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
}

}  // namespace
}  // namespace mycc
