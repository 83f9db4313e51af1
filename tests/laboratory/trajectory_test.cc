// Single searches of a recorded space: budgets, noise, generations in flight, exhaustion.
#include "laboratory/trajectory.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "laboratory/simulation.h"
#include "tests/laboratory/made_space.h"

namespace mycc {
namespace {

RunConfig ConfigOf(const std::string& strategy, uint64_t seed, int evaluations) {
  RunConfig config;
  config.strategy = strategy;
  config.seed = seed;
  config.generation_size = 6;
  config.evaluations = evaluations;
  return config;
}

TEST(TrajectoryTest, ReadsItsSteps) {
  Trajectory run;
  run.steps = {{4, true, 1, 0}, {2, false, 3, 0.5}, {9, false, 4, 0.5}, {7, false, 6, 0.96}};
  EXPECT_EQ(run.FractionAfter(0), 0);
  EXPECT_EQ(run.FractionAfter(1), 0);
  EXPECT_EQ(run.FractionAfter(2), 0.5);
  EXPECT_EQ(run.FractionAfter(4), 0.96);
  EXPECT_EQ(run.FractionAfter(100), 0.96);
  EXPECT_EQ(run.EvaluationsWithin(0.5), 0);
  EXPECT_EQ(run.EvaluationsWithin(3), 2);
  EXPECT_EQ(run.EvaluationsWithin(5.9), 3);
  EXPECT_EQ(run.EvaluationsWithin(100), 4);
  EXPECT_EQ(run.FailuresWithin(1), 1);
  EXPECT_EQ(run.FailuresWithin(9), 1);
  EXPECT_EQ(run.EvaluationsTo(0.95), 4);
  EXPECT_EQ(run.EvaluationsTo(0.5), 2);
  EXPECT_EQ(run.EvaluationsTo(0.97), 0);
}

TEST(TrajectoryTest, EveryStrategySearchesWithinItsBudget) {
  const auto replay = SpaceReplay::Make(MadeSpace());
  ASSERT_TRUE(replay.ok()) << replay.status();
  for (const std::string& strategy : SimulatedStrategies()) {
    SCOPED_TRACE(strategy);
    const auto run = RunSearch(ConfigOf(strategy, 3, 40), *replay, {}, nullptr);
    ASSERT_TRUE(run.ok()) << run.status();
    ASSERT_EQ(run->steps.size(), 40u);
    EXPECT_FALSE(run->exhausted);
    std::set<int> seen;
    double spent = 0, best = 0;
    for (const Evaluated& step : run->steps) {
      EXPECT_TRUE(seen.insert(step.configuration).second);
      const Evaluation evaluation = replay->Measure(step.configuration, nullptr);
      spent += evaluation.cost_seconds;
      best = std::max(best, replay->FractionOf(step.configuration));
      EXPECT_DOUBLE_EQ(step.spent_seconds, spent);
      EXPECT_EQ(step.fraction, best);
      EXPECT_EQ(step.failed, !evaluation.seconds.has_value());
    }
    const auto again = RunSearch(ConfigOf(strategy, 3, 40), *replay, {}, nullptr);
    ASSERT_TRUE(again.ok()) << again.status();
    for (size_t i = 0; i < 40; ++i) EXPECT_EQ(again->steps[i].configuration, run->steps[i].configuration);
  }
}

TEST(TrajectoryTest, ALargerBudgetContinuesASmallerOne) {
  const auto replay = SpaceReplay::Make(MadeSpace());
  ASSERT_TRUE(replay.ok()) << replay.status();
  const auto small = RunSearch(ConfigOf("evolutionary", 1, 18), *replay, {}, nullptr);
  const auto large = RunSearch(ConfigOf("evolutionary", 1, 60), *replay, {}, nullptr);
  ASSERT_TRUE(small.ok() && large.ok());
  for (size_t i = 0; i < 18; ++i) EXPECT_EQ(small->steps[i].configuration, large->steps[i].configuration);
}

TEST(TrajectoryTest, TheWholeSpaceHoldsTheOptimum) {
  const auto replay = SpaceReplay::Make(MadeSpace());
  ASSERT_TRUE(replay.ok()) << replay.status();
  const int all = static_cast<int>(replay->space().configurations.size());
  for (const char* strategy : {"evolutionary", "random", "grid"}) {
    const auto run = RunSearch(ConfigOf(strategy, 1, all + 50), *replay, {}, nullptr);
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_EQ(static_cast<int>(run->steps.size()), all) << strategy;
    EXPECT_TRUE(run->exhausted) << strategy;
    EXPECT_EQ(run->steps.back().fraction, 1) << strategy;
  }
}

TEST(TrajectoryTest, ABudgetOfSecondsGoesOnButNotForEver) {
  const auto replay = SpaceReplay::Make(MadeSpace());
  ASSERT_TRUE(replay.ok()) << replay.status();
  RunConfig config = ConfigOf("random", 2, 10);
  config.cost_seconds = 15 * replay->mean_cost_seconds();
  auto run = RunSearch(config, *replay, {}, nullptr);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_GT(run->steps.size(), 10u);
  EXPECT_GE(run->steps.back().spent_seconds, config.cost_seconds);
  config.cost_seconds = 1e6;
  run = RunSearch(config, *replay, {}, nullptr);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->steps.size(), 40u);
}

// A time that is too good by luck is believed; the truth about it is what counts.
TEST(TrajectoryTest, NoiseIsJudgedByTheTrueMean) {
  RecordedSpace space;
  space.name = "two";
  space.parameters = {{"p", {"0", "1"}}};
  space.configurations = {{{0}, {1.0, 1.0}}, {{1}, {0.5, 3.5}}};  // means 1 and 2
  const auto replay = SpaceReplay::Make(space);
  ASSERT_TRUE(replay.ok()) << replay.status();
  RunConfig config = ConfigOf("grid", 0, 2);
  config.noise = true;
  std::set<double> ends;
  for (config.seed = 0; config.seed < 40; ++config.seed) {
    const auto run = RunSearch(config, *replay, {}, nullptr);
    ASSERT_TRUE(run.ok()) << run.status();
    ends.insert(run->steps.back().fraction);
  }
  EXPECT_EQ(ends, (std::set<double>{0.5, 1.0}));
}

TEST(TrajectoryTest, UnseenGenerationsChangeTheSearch) {
  const auto replay = SpaceReplay::Make(MadeSpace());
  ASSERT_TRUE(replay.ok()) << replay.status();
  RunConfig config = ConfigOf("evolutionary", 5, 48);
  const auto at_once = RunSearch(config, *replay, {}, nullptr);
  config.lag = 2;
  const auto later = RunSearch(config, *replay, {}, nullptr);
  ASSERT_TRUE(at_once.ok() && later.ok());
  bool differs = false;
  for (size_t i = 0; i < 48; ++i) differs |= at_once->steps[i].configuration != later->steps[i].configuration;
  EXPECT_TRUE(differs);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(at_once->steps[i].configuration, later->steps[i].configuration);
}

TEST(TrajectoryTest, RefusesAnUnknownStrategy) {
  const auto replay = SpaceReplay::Make(MadeSpace());
  ASSERT_TRUE(replay.ok()) << replay.status();
  EXPECT_THAT(std::string(RunSearch(ConfigOf("lucky", 0, 5), *replay, {}, nullptr).status().message()),
              ::testing::HasSubstr("unknown strategy \"lucky\""));
}

}  // namespace
}  // namespace mycc
