// A recorded space as a sketch and a device: recorded times, noise, costs, and what is refused.
#include "laboratory/replay.h"

#include <algorithm>
#include <functional>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "laboratory/statistics.h"
#include "tests/laboratory/made_space.h"
#include "tuner/search/sampler.h"
#include "tuner/space/refit.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

TEST(ReplayTest, AnswersWithTheRecordedTimes) {
  const RecordedSpace space = MadeSpace();
  const auto replay = SpaceReplay::Make(space);
  ASSERT_TRUE(replay.ok()) << replay.status();
  double optimum = 1e9, cost = 0;
  int failures = 0;
  for (size_t i = 0; i < space.configurations.size(); ++i) {
    const RecordedConfiguration& recorded = space.configurations[i];
    const int number = static_cast<int>(i);
    EXPECT_EQ(replay->NumberOf(recorded.choices), number);
    const Evaluation evaluation = replay->Measure(number, nullptr);
    double runs = 0;
    for (const double seconds : recorded.run_seconds) runs += seconds;
    EXPECT_DOUBLE_EQ(evaluation.cost_seconds, recorded.compile_seconds + runs);
    cost += evaluation.cost_seconds;
    EXPECT_EQ(evaluation.seconds.has_value(), recorded.failure.empty());
    failures += !recorded.failure.empty();
    if (!evaluation.seconds) {
      EXPECT_EQ(replay->FractionOf(number), 0);
      continue;
    }
    EXPECT_DOUBLE_EQ(*evaluation.seconds, runs / 7);
    optimum = std::min(optimum, runs / 7);
  }
  EXPECT_DOUBLE_EQ(replay->optimum_seconds(), optimum);
  EXPECT_EQ(replay->failures(), failures);
  EXPECT_GT(failures, 0);
  EXPECT_TRUE(replay->compile_times_known());
  EXPECT_NEAR(replay->mean_cost_seconds(), cost / static_cast<double>(space.configurations.size()), 1e-12);
  EXPECT_EQ(replay->raw_size(), 8 * 6 * 3 * 2);
  EXPECT_EQ(replay->fractions().front(), 1);
  EXPECT_EQ(replay->fractions().back(), 0);
}

TEST(ReplayTest, ATimeThatTheSourceSaysStandsForTheMean) {
  RecordedSpace space = MadeSpace();
  space.configurations[5].seconds = 1e-9;
  space.configurations[5].measuring_seconds = 2.5;
  auto replay = SpaceReplay::Make(space);
  ASSERT_TRUE(replay.ok()) << replay.status();
  EXPECT_EQ(replay->Seconds(5), 1e-9);
  EXPECT_EQ(replay->optimum_seconds(), 1e-9);
  EXPECT_EQ(replay->FractionOf(5), 1);
  EXPECT_EQ(replay->Measure(5, nullptr).cost_seconds, space.configurations[5].compile_seconds + 2.5);
}

TEST(ReplayTest, NoiseDrawsEachRepetition) {
  const RecordedSpace space = MadeSpace();
  const auto replay = SpaceReplay::Make(space);
  ASSERT_TRUE(replay.ok()) << replay.status();
  std::set<double> drawn;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    const Evaluation evaluation = replay->Measure(5, &rng);
    drawn.insert(*evaluation.seconds);
    EXPECT_EQ(evaluation.cost_seconds, replay->Measure(5, nullptr).cost_seconds);
  }
  const std::vector<double>& runs = space.configurations[5].run_seconds;
  EXPECT_EQ(drawn, std::set<double>(runs.begin(), runs.end()));
}

// The legal points are the recorded ones; a trace leads back to its point, and no two have the same steps.
TEST(ReplayTest, TheSketchIsTheSpace) {
  const auto replay = SpaceReplay::Make(MadeSpace());
  ASSERT_TRUE(replay.ok()) << replay.status();
  const std::vector<Sketch> sketches = {replay->sketch()};
  const Sampler sampler(sketches);
  int points = 0;
  std::set<std::string> steps;
  sampler.Enumerate(0, 1 << 20, [&](const Point& point) {
    ++points;
    EXPECT_TRUE(replay->NumberOf(point.choice).has_value());
    const auto trace = sketches[0].instantiate(point.choice);
    EXPECT_TRUE(trace.ok());
    const auto read = ParseTrace(PrintTrace(*trace));
    EXPECT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(PointOf(*read, sketches), point);
    Trace alone;
    alone.steps = trace->steps;
    EXPECT_TRUE(steps.insert(PrintTrace(alone)).second);
    return true;
  });
  EXPECT_EQ(points, static_cast<int>(replay->space().configurations.size()));
  EXPECT_TRUE(replay->NumberOf(sketches[0].default_choice).has_value());
  EXPECT_EQ(replay->NumberOf({7, 5, 0, 0}), std::nullopt);
}

TEST(ReplayTest, NamesAndValuesOfAnyKind) {
  RecordedSpace space;
  space.name = "odd";
  space.parameters = {{"tile size (x)", {"0.5", "1", "2"}}, {"type=", {"float4", "half"}, false}};
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 2; ++j) space.configurations.push_back({{i, j}, {1.0 + i + j}});
  }
  const auto replay = SpaceReplay::Make(space);
  ASSERT_TRUE(replay.ok()) << replay.status();
  const auto trace = replay->sketch().instantiate({1, 1});
  ASSERT_TRUE(trace.ok()) << trace.status();
  const auto read = ParseTrace(PrintTrace(*trace));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(PointOf(*read, {replay->sketch()}), (Point{0, {1, 1}}));
}

TEST(ReplayTest, RefusesWhatCannotBeSearched) {
  const auto refusal = [](const std::function<void(RecordedSpace*)>& spoil) {
    RecordedSpace space = MadeSpace("gpu7");
    spoil(&space);
    return std::string(SpaceReplay::Make(space).status().message());
  };
  EXPECT_THAT(refusal([](RecordedSpace* s) { s->parameters.clear(); }),
              HasSubstr("space \"made\" of gpu7: no parameter; expected at least one"));
  EXPECT_THAT(refusal([](RecordedSpace* s) { s->parameters[1].values.clear(); }),
              HasSubstr("parameter tile has no value"));
  EXPECT_THAT(refusal([](RecordedSpace* s) { s->parameters[1].name = "block"; }),
              HasSubstr("a second parameter block"));
  EXPECT_THAT(refusal([](RecordedSpace* s) { s->configurations[3].choices.pop_back(); }),
              HasSubstr("configuration 3 has 3 choices; expected 4"));
  EXPECT_THAT(refusal([](RecordedSpace* s) { s->configurations[3].choices[2] = 3; }),
              HasSubstr("configuration 3: choice 3 of layout; expected 0 to 2"));
  EXPECT_THAT(refusal([](RecordedSpace* s) { s->configurations[4] = s->configurations[3]; }),
              HasSubstr("configuration 4 was recorded before"));
  EXPECT_THAT(refusal([](RecordedSpace* s) { s->configurations[0].run_seconds[0] = 0; }),
              HasSubstr("configuration 0 took 0 s"));
  EXPECT_THAT(refusal([](RecordedSpace* s) { s->configurations[0].compile_seconds = -1; }),
              HasSubstr("configuration 0 was compiled in -1 s"));
  EXPECT_THAT(refusal([](RecordedSpace* s) { s->configurations[0].measuring_seconds = -1; }),
              HasSubstr("configuration 0 was measured in -1 s"));
  EXPECT_THAT(refusal([](RecordedSpace* s) { s->configurations[0].seconds = 0; }),
              HasSubstr("configuration 0 took 0 s"));
  EXPECT_THAT(refusal([](RecordedSpace* s) {
                for (RecordedConfiguration& c : s->configurations) c.run_seconds.clear();
              }),
              HasSubstr("configurations succeeded; expected at least one"));
}

}  // namespace
}  // namespace mycc
