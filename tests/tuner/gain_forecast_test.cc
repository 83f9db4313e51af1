// Forecasts of the next minute, against histories that are made up and against a simulated search.
#include "tuner/scheduler/gain_forecast.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

TaskProgress Measured(double weight, std::vector<std::optional<double>> best) {
  TaskProgress task;
  task.info.weight = weight;
  task.generations = static_cast<int>(best.size());
  task.best_seconds = std::move(best);
  return task;
}

// `count` proposals of the first task, one each `pause` seconds.
std::vector<ProposedAt> Every(double pause, int count) {
  std::vector<ProposedAt> times;
  for (int i = 0; i < count; ++i) times.push_back({0, pause * i});
  return times;
}

TEST(GainForecastTest, SaysNothingWhileTooLittleIsKnown) {
  const std::vector<ProposedAt> times = Every(10, 8);
  EXPECT_FALSE(ForecastMinute({}, {Measured(1, {1.0, 0.9})}, times, 59)) << "in the first minute";
  EXPECT_TRUE(ForecastMinute({}, {Measured(1, {1.0, 0.9})}, times, 60));
  EXPECT_FALSE(ForecastMinute({}, {Measured(1, {1.0, 0.9}), Measured(1, {})}, times, 80))
      << "one was never measured";
  EXPECT_FALSE(ForecastMinute({}, {Measured(1, {1.0}), Measured(1, {1.0})}, times, 80))
      << "none was measured twice";
  EXPECT_FALSE(ForecastMinute({}, {Measured(8, {1.0, 1.0}), Measured(1, {1.0})}, times, 80))
      << "a ninth was measured once";
  EXPECT_TRUE(ForecastMinute({}, {Measured(10, {1.0, 1.0}), Measured(1, {1.0})}, times, 80));
  EXPECT_TRUE(ForecastMinute({.min_share = 0.2}, {Measured(8, {1.0, 1.0}), Measured(1, {1.0})}, times, 80))
      << "it is to have no other";
  EXPECT_TRUE(ForecastMinute({}, {Measured(1, {1.0, 1.0}), Measured(1, {std::nullopt})}, times, 80))
      << "one that fails does not hold up the others";
}

// Six generations a minute, each like the mean of the last six and less with every further one.
TEST(GainForecastTest, OneTaskGoesOnAsItDid) {
  std::vector<std::optional<double>> best;
  for (int i = 0; i <= 6; ++i) best.push_back(1.6 - 0.1 * i);
  const auto forecast = ForecastMinute({}, {Measured(2, best)}, Every(10, 7), 70);
  ASSERT_TRUE(forecast);
  EXPECT_DOUBLE_EQ(forecast->latency_seconds, 2 * 1.0);
  double gain = 0;
  for (int i = 0; i < 6; ++i) gain += 2 * 0.1 * 7 / (7 + i);
  EXPECT_NEAR(forecast->gain_seconds, gain, 1e-9);
  EXPECT_NEAR(forecast->Share(), gain / 2, 1e-9);
}

TEST(GainForecastTest, AMinuteWithoutAnyGainPromisesNone) {
  std::vector<std::optional<double>> best(8, 1.0);
  EXPECT_EQ(ForecastMinute({}, {Measured(1, best)}, Every(10, 8), 80)->gain_seconds, 0);
  best[0] = 2.0;  // longer than a minute ago
  EXPECT_EQ(ForecastMinute({}, {Measured(1, best)}, Every(10, 8), 80)->gain_seconds, 0);
  best.back() = 0.9;
  EXPECT_GT(ForecastMinute({}, {Measured(1, best)}, Every(10, 8), 80)->gain_seconds, 0);
}

// One task's second generation gained a fifth. The forecast expects the same of a task without a second one.
TEST(GainForecastTest, ATaskThatWasMeasuredOnceIsExpectedToBeLikeTheOthers) {
  std::vector<std::optional<double>> stalled(40, 0.8);
  stalled[0] = 1.0;
  const std::vector<ProposedAt> times = Every(60, 41);
  EXPECT_NEAR(ForecastMinute({}, {Measured(20, stalled), Measured(1, {1.0})}, times, 2460)->gain_seconds, 0.2,
              1e-9);
  EXPECT_EQ(ForecastMinute({}, {Measured(20, stalled)}, times, 2460)->gain_seconds, 0);
}

TEST(GainForecastTest, TheMinuteGoesWhereItGainsMost) {
  const TaskProgress one = Measured(1, {4.0, 3.9, 3.8, 3.7}), other = Measured(4, {4.0, 3.9, 3.8, 3.7});
  const std::vector<ProposedAt> times = Every(60, 8);
  EXPECT_NEAR(ForecastMinute({}, {one, other}, times, 480)->gain_seconds, 4 * 0.1, 1e-9);
  TaskProgress exhausted = other;
  exhausted.exhausted = true;
  EXPECT_NEAR(ForecastMinute({}, {one, exhausted}, times, 480)->gain_seconds, 0.1, 1e-9);
  EXPECT_NEAR(ForecastMinute({}, {one, exhausted}, times, 480)->latency_seconds, 5 * 3.7, 1e-9);
}

// For an hour no worker was there: the pace is that of the other pauses.
TEST(GainForecastTest, ATimeWithoutWorkersIsNoSlowSearch) {
  std::vector<ProposedAt> times = Every(10, 10);
  const std::vector<TaskProgress> tasks = {Measured(1, {4.0, 3.9, 3.8, 3.7})};
  const double before = ForecastMinute({}, tasks, times, 100)->gain_seconds;
  for (size_t i = 5; i < times.size(); ++i) times[i].seconds += 3600;
  EXPECT_DOUBLE_EQ(ForecastMinute({}, tasks, times, 3700)->gain_seconds, before);
}

// The forecast is of the size of what the next minute of a search of 30 kernels then gains.
TEST(GainForecastTest, ASimulatedSearchGainsAboutWhatWasExpected) {
  constexpr int kTasks = 30;
  constexpr double kPause = 3;
  std::vector<TaskProgress> tasks(kTasks);
  std::vector<ProposedAt> times;
  std::vector<double> latencies, expected;
  const auto latency = [](int i, int generations) {
    const double base = std::exp2(-(i * 7 % kTasks) / 4.0), potential = 0.1 + 0.05 * (i % 12);
    return base * (1 - potential * (1 - std::exp2(-(generations - 1) / (1.0 + i % 4))));
  };
  for (int i = 0; i < kTasks; ++i) tasks[i].info.weight = 1 + i % 3;
  SchedulerConfig config;
  config.max_trials = config.max_trials_per_task = 1 << 20;
  for (int proposal = 0; proposal < 300; ++proposal) {
    const int chosen = *NextTask(config, tasks, 0).task;
    TaskProgress& task = tasks[chosen];
    task.trials += 16;
    task.best_seconds.push_back(latency(chosen, ++task.generations));
    times.push_back({chosen, kPause * proposal});
    const auto forecast = ForecastMinute(config, tasks, times, kPause * proposal);
    latencies.push_back(forecast ? forecast->latency_seconds : 0);
    expected.push_back(forecast ? forecast->gain_seconds : -1);
  }
  constexpr int kAMinute = static_cast<int>(60 / kPause);
  int compared = 0;
  for (size_t i = 0; i + kAMinute < latencies.size(); ++i) {
    if (expected[i] < 0) continue;
    ++compared;
    const double gained = (latencies[i] - latencies[i + kAMinute]) / latencies[i];
    EXPECT_GT(expected[i] / latencies[i], gained / 2) << i;
    EXPECT_LT(expected[i] / latencies[i], gained * 3) << i;
  }
  EXPECT_GT(compared, 200);
  EXPECT_LT(expected.back() / latencies.back(), 0.01);
}

TEST(GainOfTwiceTest, HalfOfWhatTheLastDoublingGained) {
  EXPECT_FALSE(GainOfTwice({}));
  EXPECT_FALSE(GainOfTwice({{1, {{16, 1.0}}}})) << "one generation shows no fall";
  EXPECT_NEAR(*GainOfTwice({{1, {{4, 2.0}, {8, 1.2}, {16, 1.0}}}}), 0.1, 1e-9);
  EXPECT_NEAR(*GainOfTwice({{3, {{4, 2.0}, {8, 1.2}, {16, 1.0}}}}), 0.1, 1e-9) << "a share";
  EXPECT_NEAR(*GainOfTwice({{1, {{16, 1.2}, {32, 1.1}, {48, 1.0}, {64, 1.0}}}}), 0.05, 1e-9);
  EXPECT_EQ(*GainOfTwice({{1, {{16, 1.0}, {32, 1.0}}}}), 0);
}

// The gain of the first generations does not prolong a search whose latest ones gained nothing.
TEST(GainOfTwiceTest, TheLastDoublingBeginsNearHalfOfTheTrials) {
  EXPECT_EQ(*GainOfTwice({{1, {{12, 1.2}, {24, 1.0}, {40, 1.0}}}}), 0);
  EXPECT_NEAR(*GainOfTwice({{1, {{12, 1.2}, {24, 1.1}, {40, 1.0}}}}), 0.05, 1e-9);
  EXPECT_NEAR(*GainOfTwice({{1, {{10, 1.02}, {11, 1.0}}}}), 0.01, 1e-9) << "a short last generation";
}

TEST(GainOfTwiceTest, TasksCountByWhatTheyTake) {
  const TrialFall falls{1, {{16, 1.4}, {32, 1.0}}}, stalls{9, {{16, 1.0}, {32, 1.0}}};
  EXPECT_NEAR(*GainOfTwice({falls, stalls}), 0.02, 1e-9);
  EXPECT_NEAR(*GainOfTwice({falls, stalls, {50, {{16, 1.0}}}}), 0.02, 1e-9) << "that is like the others";
}

TEST(GainOfTwiceTest, ASearchIsForecastFromItsSecondGenerationOn) {
  const auto task = [](std::vector<std::optional<double>> best, std::vector<int64_t> trials) {
    TaskProgress progress;
    progress.trials = trials.back();
    progress.generations = static_cast<int>(best.size());
    progress.best_seconds = std::move(best);
    progress.trials_seen = std::move(trials);
    return progress;
  };
  EXPECT_FALSE(ForecastTwice({}, {task({1.0}, {8})}, 2));
  EXPECT_FALSE(ForecastTwice({}, {task({1.0, 1.0}, {8, 16})}, 1.9)) << "cheap trials";
  EXPECT_EQ(*ForecastTwice({}, {task({1.0, 1.0}, {8, 16})}, 2), 0);
  EXPECT_NEAR(*ForecastTwice({}, {task({1.2, 1.0}, {8, 16})}, 2), 0.1, 1e-9);
  EXPECT_FALSE(ForecastTwice({}, {task({std::nullopt, 1.0}, {8, 16})}, 2)) << "no second valid generation";
  EXPECT_FALSE(ForecastTwice({}, {task({1.0, 1.0}, {8, 16}), task({1.0}, {8})}, 2)) << "half is unknown";
  EXPECT_FALSE(ForecastTwice({}, {task({1.0, 1.0}, {8, 16}), TaskProgress()}, 2)) << "one has not begun";
  EXPECT_FALSE(ForecastTwice({}, {task({1.0, 1.0}, {8, 16}), task({std::nullopt, 1.0}, {8, 16})}, 2))
      << "half has one valid generation";
  const TaskProgress flat = task({1.0, 1.0}, {8, 16});
  EXPECT_FALSE(ForecastTwice({}, {flat, task({std::nullopt, std::nullopt}, {8, 16})}, 2)) << "patience";
  EXPECT_EQ(*ForecastTwice({}, {flat, task({std::nullopt, std::nullopt, std::nullopt}, {8, 16, 24})}, 2), 0);
}

}  // namespace
}  // namespace mycc
