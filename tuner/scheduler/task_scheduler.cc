#include "tuner/scheduler/task_scheduler.h"

#include <algorithm>

namespace mycc {
namespace {

std::optional<double> BestOf(const TaskProgress& task) {
  return task.best_seconds.empty() ? std::nullopt : task.best_seconds.back();
}

bool Open(const SchedulerConfig& config, const TaskProgress& task) {
  return !task.exhausted && task.trials < config.max_trials_per_task;
}

// Seconds gained per generation over the last `window` generations that had a valid result before them.
double RecentGain(const SchedulerConfig& config, const TaskProgress& task) {
  const int last = static_cast<int>(task.best_seconds.size()) - 1;
  int first = std::max(0, last - config.window);
  while (first < last && !task.best_seconds[first]) ++first;
  return first >= last ? 0 : (*task.best_seconds[first] - *task.best_seconds[last]) / (last - first);
}

// The most that one more generation may gain: a share that shrinks with every generation spent, or the
// distance to the family's best FLOP/s.
double PossibleGain(const SchedulerConfig& config, const TaskProgress& task,
                    const std::vector<TaskProgress>& tasks) {
  const double seconds = *BestOf(task);
  double gain = seconds / std::max(1, task.generations);
  if (task.info.family.empty() || task.info.flops <= 0) return gain;
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
    open = open || Open(config, task);
    all_exhausted = all_exhausted && task.exhausted;
  }
  if (trials >= config.max_trials) return StopReason::kTrials;
  if (!open) return all_exhausted ? StopReason::kExhausted : StopReason::kTrials;
  if (config.max_seconds > 0 && elapsed_seconds >= config.max_seconds) return StopReason::kTime;
  return std::nullopt;
}

// A task that is owed a generation before gains are compared: one that has had none, one that still looks for
// its first valid result.
std::optional<int> OwedTask(const SchedulerConfig& config, const std::vector<TaskProgress>& tasks) {
  int64_t trials = 0;
  for (const TaskProgress& task : tasks) trials += task.trials;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (Open(config, tasks[i]) && tasks[i].generations == 0) return static_cast<int>(i);
  }
  for (size_t i = 0; i < tasks.size(); ++i) {
    const TaskProgress& task = tasks[i];
    if (!Open(config, task) || task.best_seconds.empty() || BestOf(task)) continue;
    const bool behind = 2 * task.trials * static_cast<int64_t>(tasks.size()) < trials;
    if (task.generations < config.patience || behind) return static_cast<int>(i);
  }
  return std::nullopt;
}

// For when nothing is known of any open task yet.
std::optional<int> FewestGenerations(const SchedulerConfig& config, const std::vector<TaskProgress>& tasks) {
  std::optional<int> fewest;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (Open(config, tasks[i]) && (!fewest || tasks[i].generations < tasks[*fewest].generations))
      fewest = static_cast<int>(i);
  }
  return fewest;
}

}  // namespace

TaskChoice NextTask(const SchedulerConfig& config, const std::vector<TaskProgress>& tasks,
                    double elapsed_seconds) {
  TaskChoice choice;
  choice.stop = Stop(config, tasks, elapsed_seconds);
  if (choice.stop) return choice;
  choice.task = OwedTask(config, tasks);
  if (choice.task) return choice;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (!Open(config, tasks[i]) || !BestOf(tasks[i])) continue;
    const double gain = ExpectedGain(config, tasks[i], tasks);
    if (choice.task && gain <= choice.expected_gain_seconds) continue;
    choice.task = static_cast<int>(i);
    choice.expected_gain_seconds = gain;
  }
  if (!choice.task) choice.task = FewestGenerations(config, tasks);
  return choice;
}

}  // namespace mycc
