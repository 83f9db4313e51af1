// A recorded space as a sketch: strategies run on it unchanged.
#include "laboratory/recorded_sketch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tuner/search/legal_moves.h"
#include "tuner/search/sampler.h"
#include "tuner/search/strategy.h"

namespace mycc {
namespace {

using testing::ElementsAre;

// 8 x 4 x 2 configurations without those of even places and "half"; the best is (5, 2, 0).
std::shared_ptr<const RecordedSpace> MakeSpace() {
  auto space = std::make_shared<RecordedSpace>();
  space->name = "bowl";
  space->parameters = {{"block size", {"1", "2", "4", "8", "16", "32", "64", "128"}, true},
                       {"factor", {"0.25", "0.5", "1", "2"}, true},
                       {"type", {"float", "half"}, false}};
  for (int a = 0; a < 8; ++a) {
    for (int b = 0; b < 4; ++b) {
      for (int c = 0; c < 2; ++c) {
        if (c == 1 && a % 2 == 0) continue;
        const double seconds = 1e-3 * (1 + (a - 5) * (a - 5) + (b - 2) * (b - 2) + c);
        space->configurations.push_back({{a, b, c}, {seconds, seconds}, 0.1, ""});
      }
    }
  }
  return space;
}

TEST(RecordedSketchTest, DecisionsAreTheParameters) {
  const auto space = MakeSpace();
  const Sketch sketch = RecordedSketch(space);
  ASSERT_EQ(sketch.space.decisions.size(), 3u);
  EXPECT_EQ(sketch.space.decisions[0].name, "block_size");
  EXPECT_THAT(sketch.space.decisions[0].choices, ElementsAre(1, 2, 4, 8, 16, 32, 64, 128));
  EXPECT_THAT(sketch.space.decisions[1].choices, ElementsAre(0, 1, 2, 3));  // no integers: their numbers
  EXPECT_TRUE(sketch.space.decisions[1].ordered);
  EXPECT_FALSE(sketch.space.decisions[2].ordered);
  EXPECT_TRUE(sketch.space.Legal({4, 1, 0}));
  EXPECT_FALSE(sketch.space.Legal({4, 1, 1}));
  EXPECT_TRUE(sketch.space.Legal(sketch.default_choice));
  const ConfigurationIndex index(*space);
  EXPECT_EQ(space->configurations[index.Find({7, 3, 1})].choices, (Choice{7, 3, 1}));
  EXPECT_EQ(index.Find({0, 0, 1}), -1);
}

// One point in 1,000 of the choices is recorded: drawing finds none, and the points are equally likely still.
TEST(RecordedSketchTest, RecordedPointsAreEquallyLikelyHoweverFewTheyAre) {
  auto space = std::make_shared<RecordedSpace>();
  space->name = "sparse";
  std::vector<std::string> values;
  for (int i = 0; i < 10; ++i) values.push_back(std::to_string(i));
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) space->parameters.push_back({name, values, true});
  // Nearly all of them lie in one corner, far from the default.
  for (int i = 0; i < 1000; ++i)
    space->configurations.push_back(
        {{i < 900 ? 0 : 9, i / 100, i / 10 % 10, i % 10, i % 7, i % 3}, {1.0}, 0, ""});
  const std::vector<Sketch> sketches = {RecordedSketch(space)};
  Rng rng(1);
  int in_corner = 0;
  for (int i = 0; i < 2000; ++i) in_corner += Sampler(sketches).Random(&rng).choice[0] == 0;
  EXPECT_NEAR(in_corner, 1800, 60);
  int listed = 0;
  EXPECT_EQ(Sampler(sketches).size(), 1000);
  Sampler(sketches).Enumerate(0, 1000, [&](const Point& point) {
    listed += sketches[0].space.Legal(point.choice);
    return true;
  });
  EXPECT_EQ(listed, 1000);
  const LegalMoves moves(sketches);
  EXPECT_EQ(moves.CountUpTo(1000), 1000);
  EXPECT_EQ(moves.All().size(), 1000u);
  EXPECT_TRUE(sketches[0].space.Legal(moves.Random(&rng).choice));
}

TEST(RecordedSketchTest, TracesCarryTheDecisionsAndAreReadBack) {
  const Sketch sketch = RecordedSketch(MakeSpace());
  const auto trace = sketch.instantiate({5, 2, 0});
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(PrintSketch(*trace), "recorded block_size=32 factor=2 type=0");
  const auto again = ParseTrace(PrintTrace(*trace));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(PointOf(*again, {sketch})->choice, (Choice{5, 2, 0}));
  EXPECT_TRUE(absl::IsFailedPrecondition(sketch.instantiate({4, 2, 1}).status()));
}

TEST(RecordedSketchTest, TheAuthorsDefaultIsTakenWhereItIsLegal) {
  RecordedSpace space = *MakeSpace();
  space.default_choices = {7, 0, 1};
  EXPECT_EQ(RecordedSketch(std::make_shared<const RecordedSpace>(space)).default_choice, (Choice{7, 0, 1}));
  space.default_choices = {6, 0, 1};
  EXPECT_NE(RecordedSketch(std::make_shared<const RecordedSpace>(space)).default_choice, (Choice{6, 0, 1}));
}

TEST(RecordedSketchTest, EveryStrategyFindsTheBestOfAllItsPoints) {
  const auto space = MakeSpace();
  const ConfigurationIndex index(*space);
  for (const char* name : {"evolutionary", "random", "grid"}) {
    SearchConfig config;
    config.strategy = name;
    config.generation_size = 8;
    auto strategy = MakeSearchStrategy(config, {RecordedSketch(space)}, {}, nullptr);
    ASSERT_TRUE(strategy.ok()) << strategy.status();
    int64_t measured = 0;
    for (int g = 0; g < 12 && !(*strategy)->Exhausted(); ++g) {
      const auto generation = (*strategy)->Ask(g, 8);
      ASSERT_TRUE(generation.ok()) << generation.status();
      std::vector<Outcome> outcomes;
      for (const Candidate& candidate : *generation) {
        const int place = index.Find(candidate.point.choice);
        ASSERT_GE(place, 0);
        outcomes.push_back(
            {candidate.generation, candidate.index, space->configurations[place].run_seconds[0], ""});
      }
      ASSERT_TRUE((*strategy)->Tell(outcomes).ok());
      measured += static_cast<int64_t>(outcomes.size());
    }
    EXPECT_EQ((*strategy)->ledger().best()->candidate.point.choice, (Choice{5, 2, 0})) << name;
    EXPECT_LE(measured, 48) << name;  // none twice
  }
}

}  // namespace
}  // namespace mycc
