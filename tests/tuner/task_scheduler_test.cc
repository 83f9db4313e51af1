// The choice of the next task.
#include "tuner/scheduler/task_scheduler.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

TaskProgress Progress(double weight, std::vector<std::optional<double>> best, int64_t trials_per_round = 8) {
  TaskProgress task;
  task.info.weight = weight;
  task.generations = static_cast<int>(best.size());
  task.trials = task.generations * trials_per_round;
  task.best_seconds = std::move(best);
  return task;
}

TEST(TaskSchedulerTest, EveryTaskHasARoundFirst) {
  EXPECT_EQ(NextTask({}, {Progress(1, {9.0}), Progress(1, {}), Progress(1, {})}, 0).task, 1);
}

TEST(TaskSchedulerTest, WeightTimesLatencyLeads) {
  EXPECT_EQ(NextTask({}, {Progress(1, {1e-3, 1e-3}), Progress(5, {1e-3, 1e-3})}, 0).task, 1);
  EXPECT_EQ(NextTask({}, {Progress(1, {9e-3, 9e-3}), Progress(5, {1e-3, 1e-3})}, 0).task, 0);
}

TEST(TaskSchedulerTest, RecentGainLeadsAmongEquals) {
  const TaskChoice choice =
      NextTask({}, {Progress(1, {1e-3, 1e-3, 1e-3}), Progress(1, {2e-3, 1.5e-3, 1e-3})}, 0);
  EXPECT_EQ(choice.task, 1);
  EXPECT_NEAR(choice.expected_gain_seconds, 0.2 * 0.5e-3 + 0.8 * 1e-3 / 3, 1e-12);
}

TEST(TaskSchedulerTest, RoundsSpentCoolATaskDown) {
  EXPECT_EQ(NextTask({}, {Progress(1, {1.0, 1.0, 1.0, 1.0, 1.0, 1.0}), Progress(1, {0.5, 0.5})}, 0).task, 1);
}

// The second task runs at a tenth of the FLOP/s of its family, which says more than its own history.
TEST(TaskSchedulerTest, ATaskBehindItsFamilyIsPromising) {
  std::vector<TaskProgress> tasks = {Progress(1, {1.0, 1.0}), Progress(1, {0.9, 0.9, 0.9, 0.9}),
                                     Progress(1, {0.1, 0.1})};
  EXPECT_EQ(NextTask({}, tasks, 0).task, 0);
  tasks[1].info.flops = tasks[2].info.flops = 1e9;
  tasks[1].info.family = tasks[2].info.family = "conv";
  EXPECT_EQ(NextTask({}, tasks, 0).task, 1);
}

// It never reaches the FLOP/s of its family: the others have their turns.
TEST(TaskSchedulerTest, ATaskThatStaysBehindItsFamilyDoesNotDrainTheOthers) {
  std::vector<TaskProgress> tasks = {Progress(1, {1.0, 1.0}),
                                     Progress(1, std::vector<std::optional<double>>(6, 0.9)),
                                     Progress(1, {0.1, 0.1})};
  tasks[1].info.flops = tasks[2].info.flops = 1e9;
  tasks[1].info.family = tasks[2].info.family = "conv";
  EXPECT_EQ(NextTask({}, tasks, 0).task, 1);
  tasks[1] = Progress(1, std::vector<std::optional<double>>(7, 0.9));
  tasks[1].info = {1, 1e9, "conv"};
  EXPECT_EQ(NextTask({}, tasks, 0).task, 0);
}

TEST(TaskSchedulerTest, FruitlessTasksAreNotStarved) {
  const SchedulerConfig config;
  std::vector<TaskProgress> tasks = {Progress(1, {1.0, 0.9}), Progress(1, {std::nullopt})};
  EXPECT_EQ(NextTask(config, tasks, 0).task, 1);  // still within its patience
  tasks[1] = Progress(1, {std::nullopt, std::nullopt, std::nullopt});
  EXPECT_EQ(NextTask(config, tasks, 0).task, 0);
  tasks[0].trials = 3 * tasks[1].trials + 1;  // now it is behind half an even share
  EXPECT_EQ(NextTask(config, tasks, 0).task, 1);
}

// With the rough costs 8, 2, 100 and 1, only the third task is above the mean.
TEST(TaskSchedulerTest, TheFirstLookIsLongWhereItMatters) {
  SchedulerConfig config;
  config.first_trials = 4;
  std::vector<TaskProgress> tasks = {Progress(4, {}), Progress(1, {}), Progress(1, {}), Progress(1, {})};
  const double rough[] = {2, 2, 100, 1};
  for (int i = 0; i < 4; ++i) tasks[i].info.rough_cost = rough[i];
  const int order[] = {2, 0, 1, 3};
  for (const int expected : order) {
    const TaskChoice choice = NextTask(config, tasks, 0);
    EXPECT_EQ(choice.task, expected);
    if (expected == 2) {
      EXPECT_GE(choice.most_trials, 16);
    } else {
      EXPECT_EQ(choice.most_trials, 4);
    }
    tasks[expected].generations = 1;
    tasks[expected].trials = std::min<int64_t>(choice.most_trials, 16);
  }
}

TEST(TaskSchedulerTest, FewTrialsReachAsManyTasksAsPossible) {
  SchedulerConfig config;
  config.first_trials = 4;
  config.max_trials = 22;
  std::vector<TaskProgress> tasks(4, Progress(1, {}));
  tasks[0].info.rough_cost = 100;
  EXPECT_EQ(NextTask(config, tasks, 0).most_trials, 22 - 3 * 4) << "what the others leave";
  config.max_trials = 7;
  std::vector<int64_t> given;
  while (true) {
    const TaskChoice choice = NextTask(config, tasks, 0);
    if (!choice.task) break;
    TaskProgress& task = tasks[*choice.task];
    if (task.generations > 0) break;
    task.generations = 1;
    task.trials = std::min(choice.most_trials, config.first_trials);
    given.push_back(task.trials);
  }
  EXPECT_THAT(given, ::testing::ElementsAre(1, 2, 2, 2));
}

TEST(TaskSchedulerTest, AShortFirstLookIsAPartOfAGeneration) {
  SchedulerConfig config;
  std::vector<TaskProgress> tasks = {Progress(1, {1.0}, 16), Progress(1, {0.5}, 4)};
  EXPECT_EQ(NextTask(config, tasks, 0).task, 0);
  config.generation_size = 16;
  EXPECT_EQ(NextTask(config, tasks, 0).task, 1);
}

TEST(TaskSchedulerTest, NegligibleTasksComeLast) {
  SchedulerConfig config;
  std::vector<std::optional<double>> stalled(900, 1.0);
  std::vector<TaskProgress> tasks = {Progress(1, stalled, 1), Progress(1, {0.0015}, 1)};
  EXPECT_EQ(NextTask(config, tasks, 0).task, 1);
  config.min_share = 0.002;
  EXPECT_EQ(NextTask(config, tasks, 0).task, 0);
  tasks[0].exhausted = true;
  EXPECT_EQ(NextTask(config, tasks, 0).task, 1) << "nothing else is left";
}

TEST(TaskSchedulerTest, StopsOnTrialsTimeAndExhaustion) {
  SchedulerConfig config;
  config.max_trials = 16;
  EXPECT_EQ(NextTask(config, {Progress(1, {1.0, 1.0})}, 0).stop, StopReason::kTrials);
  config.max_trials = 1000;
  config.max_trials_per_task = 16;
  EXPECT_EQ(NextTask(config, {Progress(1, {1.0, 1.0})}, 0).stop, StopReason::kTrials);
  EXPECT_EQ(NextTask(config, {Progress(9, {9.0, 9.0}), Progress(1, {1.0})}, 0).task, 1);
  config.max_trials_per_task = 1000;
  config.max_seconds = 60;
  EXPECT_EQ(NextTask(config, {Progress(1, {1.0})}, 59).task, 0);
  EXPECT_EQ(NextTask(config, {Progress(1, {1.0})}, 60).stop, StopReason::kTime);
  TaskProgress exhausted = Progress(1, {1.0});
  exhausted.exhausted = true;
  EXPECT_EQ(NextTask(config, {exhausted}, 0).stop, StopReason::kExhausted);
  EXPECT_EQ(NextTask(config, {exhausted, Progress(1e-9, {1.0})}, 0).task, 1);
}

TEST(TaskSchedulerTest, GenerationsInFlightCount) {
  TaskProgress task = Progress(1, {});
  task.generations = 2;
  task.trials = 16;
  EXPECT_EQ(NextTask({}, {task}, 0).task, 0);
  EXPECT_EQ(NextTask({}, {task, Progress(1, {1.0})}, 0).task, 1);
}

// Latency of task i after t generations is known; compared with taking turns, the gradient scheduler ends
// lower.
TEST(TaskSchedulerTest, BeatsTakingTurns) {
  const double weight[] = {1, 16, 2, 4}, floor[] = {1.0, 0.2, 0.5, 0.1}, head[] = {0.2, 0.6, 3.0, 0.05},
               half_life[] = {3, 6, 2, 4};
  const auto latency = [&](int i, int t) { return floor[i] + head[i] * std::exp2(-(t - 1) / half_life[i]); };
  const auto total = [&](const std::vector<TaskProgress>& tasks) {
    double sum = 0;
    for (const TaskProgress& task : tasks) {
      if (!task.best_seconds.empty()) sum += task.info.weight * task.best_seconds.back().value_or(0);
    }
    return sum;
  };
  std::vector<TaskProgress> greedy(4), turns(4);
  for (int i = 0; i < 4; ++i) greedy[i].info.weight = turns[i].info.weight = weight[i];
  for (int generation = 0; generation < 32; ++generation) {
    const int g = *NextTask({}, greedy, 0).task;
    for (auto [tasks, i] : {std::pair{&greedy, g}, std::pair{&turns, generation % 4}}) {
      TaskProgress& task = (*tasks)[i];
      ++task.generations;
      task.trials += 8;
      task.best_seconds.push_back(latency(i, task.generations));
    }
  }
  EXPECT_LT(total(greedy), 0.97 * total(turns));
}

}  // namespace
}  // namespace mycc
