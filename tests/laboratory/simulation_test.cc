// Many searches and their summary: random sampling against its exact expectation, threads, warm starts.
#include "laboratory/simulation.h"

#include <algorithm>
#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "laboratory/trajectory.h"
#include "tests/laboratory/made_space.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

SpaceReplay MadeReplay(const std::string& device = "gpu", double speed = 1, int taste = 4) {
  auto replay = SpaceReplay::Make(MadeSpace(device, speed, taste));
  EXPECT_TRUE(replay.ok()) << replay.status();
  return *std::move(replay);
}

SimulationConfig SmallConfig() {
  SimulationConfig config;
  config.budgets = {8, 24};
  config.seeds = 12;
  config.generation_size = 6;
  return config;
}

// Random sampling is known exactly: the default point first, then draws without replacement from the others.
TEST(SimulationTest, RandomSamplingIsAsOrderStatisticsSay) {
  const SpaceReplay replay = MadeReplay();
  const int first = *replay.NumberOf(replay.sketch().default_choice);
  const double fraction = replay.FractionOf(first);
  std::vector<double> others;
  for (int i = 0; i < static_cast<int>(replay.space().configurations.size()); ++i) {
    if (i != first) others.push_back(std::max(fraction, replay.FractionOf(i)));
  }
  std::sort(others.rbegin(), others.rend());
  constexpr int kSeeds = 600;
  for (const int budget : {4, 12, 40}) {
    std::vector<double> found;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      RunConfig config;
      config.strategy = "random";
      config.seed = seed;
      config.generation_size = 5;
      config.evaluations = budget;
      const auto run = RunSearch(config, replay, {}, nullptr);
      ASSERT_TRUE(run.ok()) << run.status();
      found.push_back(run->FractionAfter(budget));
    }
    const BestOfDraws exact = ExpectedBest(others, budget - 1);
    double variance = 0;
    for (const double value : found) variance += (value - exact.mean) * (value - exact.mean) / kSeeds;
    EXPECT_NEAR(Mean(found), exact.mean, 3.5 * std::sqrt(variance / kSeeds)) << budget;
    const MedianBand band = MedianWithBand(found);
    EXPECT_GE(exact.median, band.low - 0.01) << budget;
    EXPECT_LE(exact.median, band.high + 0.01) << budget;
  }
}

TEST(SimulationTest, SaysWhatTheSpaceIs) {
  const auto result = Simulate(SmallConfig(), {{MadeReplay("gpu3"), {}}});
  ASSERT_TRUE(result.ok()) << result.status();
  const SpaceResult& space = result->spaces.at(0);
  EXPECT_EQ(space.name, "made");
  EXPECT_EQ(space.device, "gpu3");
  EXPECT_EQ(space.parameters, 4);
  EXPECT_EQ(space.raw_size, 288);
  EXPECT_EQ(space.configurations, 288 - 3 * 6);
  EXPECT_EQ(space.failures, 2 * 6);
  ASSERT_EQ(space.exact_random.size(), 2u);
  EXPECT_LT(space.exact_random[0].mean, space.exact_random[1].mean);
  EXPECT_GT(space.within_target, 0);
  EXPECT_GT(space.draws_to_target, 1);
}

TEST(SimulationTest, TellsHowFarItIs) {
  SimulationConfig config = SmallConfig();
  config.strategies = {"evolutionary", "random"};
  config.noise = true;
  config.threads = 3;
  std::vector<SimulationProgress> told;
  const auto watched = Simulate(config, {{MadeReplay("gpu3"), {}}},
                                [&told](const SimulationProgress& progress) { told.push_back(progress); });
  ASSERT_TRUE(watched.ok()) << watched.status();
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told[0].device, "gpu3");
  EXPECT_EQ(told[0].strategy, "evolutionary");
  EXPECT_EQ(told[0].ended, 0);
  for (size_t i = 1; i < told.size(); ++i) {
    EXPECT_GE(told[i].ended, told[i - 1].ended);
    EXPECT_GE(told[i].evaluations, told[i - 1].evaluations);
  }
  EXPECT_EQ(told.back().searches, 12 * 2 * 2);
  EXPECT_EQ(told.back().ended, told.back().searches);
  EXPECT_GE(told.back().evaluations, 12 * 2 * 2 * 24);
  EXPECT_EQ(told.back().strategy, "random");
  EXPECT_EQ(told.back().manner, (Manner{false, true}));
  const auto alone = Simulate(config, {{MadeReplay("gpu3"), {}}});
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(watched->spaces[0].results[0].curve.back().fraction.median,
            alone->spaces[0].results[0].curve.back().fraction.median);
}

TEST(SimulationTest, CountsWhatWasSpent) {
  SimulationConfig config = SmallConfig();
  config.strategies = {"random"};
  const auto result = Simulate(config, {{MadeReplay(), {}}});
  ASSERT_TRUE(result.ok()) << result.status();
  const SpaceResult& space = result->spaces.at(0);
  const StrategyResult& random = space.results.at(0);
  ASSERT_EQ(random.by_evaluations.size(), 2u);
  ASSERT_EQ(random.by_seconds.size(), 2u);
  EXPECT_EQ(random.by_evaluations[0].budget, 8);
  EXPECT_EQ(random.by_evaluations[0].evaluations, 8);
  EXPECT_DOUBLE_EQ(random.by_seconds[1].budget, 24 * space.mean_cost_seconds);
  // The seconds pay for as many random evaluations on average, less the one that is under way.
  EXPECT_NEAR(random.by_seconds[1].evaluations, 23.5, 1);
  EXPECT_NEAR(random.by_evaluations[1].invalid, 24 * 12.0 / 270, 0.8);
  const AtBudget& at = random.by_evaluations[1];
  EXPECT_LE(at.low, at.fraction.low);
  EXPECT_LE(at.fraction.low, at.fraction.median);
  EXPECT_LE(at.fraction.median, at.fraction.high);
  EXPECT_LE(at.fraction.high, at.high);
  ASSERT_EQ(random.curve.size(), 24u);
  EXPECT_EQ(random.curve[23].fraction.median, at.fraction.median);
  EXPECT_EQ(random.curve[7].fraction.median, random.by_evaluations[0].fraction.median);
  for (size_t i = 1; i < random.curve.size(); ++i)
    EXPECT_GE(random.curve[i].fraction.median, random.curve[i - 1].fraction.median);
}

// Everything that a result says, in one text.
std::string Printed(const SimulationResult& result) {
  std::string text;
  for (const SpaceResult& space : result.spaces) {
    for (const StrategyResult& strategy : space.results) {
      absl::StrAppend(&text, strategy.strategy, strategy.manner.warm, strategy.manner.noise, " ",
                      strategy.reached, " ", strategy.evaluations_to_target.median, "\n");
      for (const CurvePoint& point : strategy.curve)
        absl::StrAppend(&text, point.fraction.low, " ", point.fraction.median, " ", point.fraction.high,
                        "\n");
      for (const AtBudget& at : strategy.by_seconds)
        absl::StrAppend(&text, at.fraction.median, " ", at.evaluations, " ", at.invalid, "\n");
    }
  }
  return text;
}

TEST(SimulationTest, ThreadsChangeNothingAndSeedsDo) {
  SimulationConfig config = SmallConfig();
  config.strategies = {"evolutionary", "random"};
  config.seeds = 6;
  config.noise = true;
  const std::vector<SimulatedSpace> spaces = {{MadeReplay(), {}}};
  const auto alone = Simulate(config, spaces);
  ASSERT_TRUE(alone.ok()) << alone.status();
  config.threads = 4;
  const auto together = Simulate(config, spaces);
  ASSERT_TRUE(together.ok()) << together.status();
  EXPECT_EQ(Printed(*alone), Printed(*together));
  config.first_seed = 1000;
  const auto other = Simulate(config, spaces);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_NE(Printed(*alone), Printed(*other));
}

const StrategyResult* Find(const SpaceResult& space, const std::string& strategy, Manner manner) {
  for (const StrategyResult& result : space.results) {
    if (result.strategy == strategy && result.manner == manner) return &result;
  }
  return nullptr;
}

TEST(SimulationTest, AWarmStartNeedsFewerEvaluations) {
  const RecordedSpace a = MadeSpace("a", 2, 3), b = MadeSpace("b", 0.5, 5);
  SimulatedSpace space{MadeReplay(), {}};
  auto warm = WarmStartFrom(space.replay, {&a, &b});
  ASSERT_TRUE(warm.ok()) << warm.status();
  space.warm = *std::move(warm);
  SimulationConfig config = SmallConfig();
  config.seeds = 12;
  config.target = 0.9;
  const auto result = Simulate(config, {space});
  ASSERT_TRUE(result.ok()) << result.status();
  const StrategyResult* cold = Find(result->spaces[0], "evolutionary", {false, false});
  const StrategyResult* with = Find(result->spaces[0], "evolutionary", {true, false});
  ASSERT_TRUE(cold != nullptr && with != nullptr);
  EXPECT_LE(2 * with->evaluations_to_target.median, cold->evaluations_to_target.median);
  EXPECT_GE(with->by_evaluations[0].fraction.median, cold->by_evaluations[0].fraction.median);
}

TEST(SimulationTest, AModelFindsMoreThanRandomDraws) {
  SimulationConfig config = SmallConfig();
  config.strategies = {"evolutionary", "random"};
  config.seeds = 10;
  config.budgets = {40};
  const auto result = Simulate(config, {{MadeReplay(), {}}});
  ASSERT_TRUE(result.ok()) << result.status();
  const SpaceResult& space = result->spaces[0];
  EXPECT_GT(Find(space, "evolutionary", {})->by_evaluations[0].fraction.median,
            Find(space, "random", {})->by_evaluations[0].fraction.median);
}

TEST(SimulationTest, TheOverallResultIsAGeometricMean) {
  SimulationConfig config = SmallConfig();
  config.strategies = {"random", "grid"};
  const auto result = Simulate(config, {{MadeReplay(), {}}, {MadeReplay("other", 1, 1), {}}});
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->overall.size(), 2u);
  EXPECT_EQ(result->overall[1].strategy, "grid");
  for (size_t b = 0; b < 2; ++b) {
    const double one = result->spaces[0].results[0].by_evaluations[b].fraction.median;
    const double two = result->spaces[1].results[0].by_evaluations[b].fraction.median;
    EXPECT_NEAR(result->overall[0].by_evaluations[b], std::sqrt(one * two), 1e-12);
  }
}

TEST(SimulationTest, RefusesWhatItCannotDo) {
  const auto refusal = [](const std::function<void(SimulationConfig*)>& spoil) {
    SimulationConfig config = SmallConfig();
    spoil(&config);
    return std::string(CheckSimulation(config).message());
  };
  EXPECT_EQ(refusal([](SimulationConfig*) {}), "");
  EXPECT_THAT(refusal([](SimulationConfig* c) { c->strategies = {"listed"}; }),
              HasSubstr("unknown strategy \"listed\"; expected evolutionary"));
  EXPECT_THAT(refusal([](SimulationConfig* c) {
                c->strategies = {"grid", "grid"};
              }),
              HasSubstr("grid twice"));
  EXPECT_THAT(refusal([](SimulationConfig* c) {
                c->budgets = {50, 25};
              }),
              HasSubstr("budgets 50,25; expected numbers of evaluations, at least 1, ascending"));
  EXPECT_THAT(refusal([](SimulationConfig* c) { c->budgets = {0}; }), HasSubstr("budgets 0"));
  EXPECT_THAT(refusal([](SimulationConfig* c) { c->budgets_seconds = {-1}; }), HasSubstr("budgets of -1 s"));
  EXPECT_THAT(refusal([](SimulationConfig* c) { c->seeds = 0; }), HasSubstr("0 seeds"));
  EXPECT_THAT(refusal([](SimulationConfig* c) { c->target = 1.5; }), HasSubstr("target 1.5"));
  EXPECT_THAT(std::string(Simulate(SmallConfig(), {}).status().message()), HasSubstr("no recorded space"));
}

}  // namespace
}  // namespace mycc
