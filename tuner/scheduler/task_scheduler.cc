#include "tuner/scheduler/task_scheduler.h"

#include <algorithm>
#include <iterator>

#include "tuner/scheduler/generation_plan.h"

namespace mycc {
namespace {

std::optional<double> BestOf(const TaskProgress& task) {
  return task.best_seconds.empty() ? std::nullopt : task.best_seconds.back();
}

// Seconds gained per generation over the last `window` generations that had a valid result before them.
double RecentGain(const SchedulerConfig& config, const TaskProgress& task) {
  const int last = static_cast<int>(task.best_seconds.size()) - 1;
  int first = std::max(0, last - config.window);
  while (first < last && !task.best_seconds[first]) ++first;
  return first >= last ? 0 : (*task.best_seconds[first] - *task.best_seconds[last]) / (last - first);
}

// Generations that were spent on the task: a short one is a part of one.
double GenerationsSpent(const SchedulerConfig& config, const TaskProgress& task) {
  constexpr double kLeast = 0.25;  // a few candidates tell as little as none
  if (config.generation_size == 0) return std::max(1, task.generations);
  return std::max(kLeast, static_cast<double>(task.trials) / static_cast<double>(config.generation_size));
}

// Two windows of generations have gained nothing.
bool HasStalled(const SchedulerConfig& config, const TaskProgress& task) {
  const int last = static_cast<int>(task.best_seconds.size()) - 1, first = last - 2 * config.window;
  return first >= 0 && task.best_seconds[first] == task.best_seconds[last];
}

// The most that one more generation may gain: a share that shrinks with every generation spent, or the
// distance to the family's best FLOP/s, unless the task comes no nearer to it.
double PossibleGain(const SchedulerConfig& config, const TaskProgress& task,
                    const std::vector<TaskProgress>& tasks) {
  const double seconds = *BestOf(task);
  double gain = seconds / GenerationsSpent(config, task);
  if (task.info.family.empty() || task.info.flops <= 0 || HasStalled(config, task)) return gain;
  double best_flops_per_second = 0;
  for (const TaskProgress& other : tasks) {
    if (&other == &task || other.info.family != task.info.family) continue;
    if (const auto other_seconds = BestOf(other))
      best_flops_per_second = std::max(best_flops_per_second, other.info.flops / *other_seconds);
  }
  if (best_flops_per_second > 0)
    gain = std::max(gain, seconds - config.beta * task.info.flops / best_flops_per_second);
  return gain;
}

double ExpectedGain(const SchedulerConfig& config, const TaskProgress& task,
                    const std::vector<TaskProgress>& tasks) {
  return task.info.weight *
         (config.alpha * RecentGain(config, task) + (1 - config.alpha) * PossibleGain(config, task, tasks));
}

std::optional<StopReason> Stop(const SchedulerConfig& config, const std::vector<TaskProgress>& tasks,
                               double elapsed_seconds) {
  int64_t trials = 0;
  bool open = false, all_exhausted = true;
  for (const TaskProgress& task : tasks) {
    trials += task.trials;
    open = open || IsOpen(config, task);
    all_exhausted = all_exhausted && task.exhausted;
  }
  if (trials >= config.max_trials) return StopReason::kTrials;
  if (!open) return all_exhausted ? StopReason::kExhausted : StopReason::kTrials;
  if (config.max_seconds > 0 && elapsed_seconds >= config.max_seconds) return StopReason::kTime;
  return std::nullopt;
}

double RoughCost(const TaskProgress& task) { return task.info.weight * task.info.rough_cost; }

// The first generation of the task that seems to matter most among those that have had none. It is a short
// one where the task seems to matter less than the average one, and where the trials would not suffice for
// others.
std::optional<TaskChoice> FirstGeneration(const SchedulerConfig& config,
                                          const std::vector<TaskProgress>& tasks) {
  std::optional<size_t> next;
  double cost = 0;
  int64_t trials = 0, unbegun = 0;
  for (size_t i = 0; i < tasks.size(); ++i) {
    cost += RoughCost(tasks[i]);
    trials += tasks[i].trials;
    if (!IsOpen(config, tasks[i]) || tasks[i].generations > 0) continue;
    ++unbegun;
    const bool leads = config.first_trials > 0 && next && RoughCost(tasks[i]) > RoughCost(tasks[*next]);
    if (!next || leads) next = i;
  }
  if (!next) return std::nullopt;
  TaskChoice choice;
  choice.task = static_cast<int>(*next);
  if (config.first_trials == 0) return choice;
  const bool matters = RoughCost(tasks[*next]) * static_cast<double>(tasks.size()) >= cost;
  const int64_t left = config.max_trials - trials;
  const int64_t even = std::max<int64_t>(1, left / unbegun);
  const int64_t spared = left - (unbegun - 1) * config.first_trials;
  choice.most_trials = matters ? std::max(even, spared) : std::min(even, config.first_trials);
  return choice;
}

// A task that still looks for its first valid result, and is owed a generation before gains are compared.
std::optional<int> FruitlessTask(const SchedulerConfig& config, const std::vector<TaskProgress>& tasks) {
  int64_t trials = 0;
  for (const TaskProgress& task : tasks) trials += task.trials;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const TaskProgress& task = tasks[i];
    if (!IsOpen(config, task) || task.best_seconds.empty() || BestOf(task)) continue;
    const bool behind = 2 * task.trials * static_cast<int64_t>(tasks.size()) < trials;
    if (task.generations < config.patience || behind) return static_cast<int>(i);
  }
  return std::nullopt;
}

// No trial of the task is in flight unseen.
bool IsSeen(const TaskProgress& task) {
  return task.generations == static_cast<int>(task.best_seconds.size());
}

// The open task with the greatest expected gain, of those that take at least `least_seconds` of the weighted
// latency. `seen`: of those alone whose trials are all seen.
TaskChoice GreatestGain(const SchedulerConfig& config, const std::vector<TaskProgress>& tasks,
                        double least_seconds, bool seen = false) {
  TaskChoice choice;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (seen && !IsSeen(tasks[i])) continue;
    if (!IsOpen(config, tasks[i]) || !BestOf(tasks[i])) continue;
    if (tasks[i].info.weight * *BestOf(tasks[i]) < least_seconds) continue;
    const double gain = ExpectedGain(config, tasks[i], tasks);
    if (choice.task && gain <= choice.expected_gain_seconds) continue;
    choice.task = static_cast<int>(i);
    choice.expected_gain_seconds = gain;
  }
  return choice;
}

// For when nothing is known of any open task yet.
std::optional<int> FewestGenerations(const SchedulerConfig& config, const std::vector<TaskProgress>& tasks) {
  std::optional<int> fewest;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (IsOpen(config, tasks[i]) && (!fewest || tasks[i].generations < tasks[*fewest].generations))
      fewest = static_cast<int>(i);
  }
  return fewest;
}

}  // namespace

bool IsOpen(const SchedulerConfig& config, const TaskProgress& task) {
  return !task.exhausted && task.trials < config.max_trials_per_task;
}

TaskChoice NextTask(const SchedulerConfig& config, const std::vector<TaskProgress>& tasks,
                    double elapsed_seconds) {
  TaskChoice choice;
  choice.stop = Stop(config, tasks, elapsed_seconds);
  if (choice.stop) return choice;
  if (const auto first = FirstGeneration(config, tasks)) return *first;
  choice.task = FruitlessTask(config, tasks);
  if (choice.task) return choice;
  double latency = 0;
  for (const TaskProgress& task : tasks) latency += task.info.weight * BestOf(task).value_or(0);
  if (HasSmallBudget(config, std::ssize(tasks)))
    choice = GreatestGain(config, tasks, config.min_share * latency, /*seen=*/true);
  if (!choice.task) choice = GreatestGain(config, tasks, config.min_share * latency);
  if (!choice.task) choice = GreatestGain(config, tasks, 0);
  if (!choice.task) choice.task = FewestGenerations(config, tasks);
  return choice;
}

}  // namespace mycc
