// How a budget of trials is divided into generations. Pure functions.
//
// Each of a few trials counts: what one generation shows should guide the next. So a small budget begins
// with four candidates, and each generation is as large as all before it, up to a whole one:
//
//   16 trials: 4 4 8      64 trials: 4 4 8 16 16 16      80 and more: 16 16 16 16 16 ...
//
// A GPU's candidates are built for half a second to three seconds, and measured in milliseconds. A generation
// takes the time of its slowest build there, and ten are built while four are, on a host with a processor
// for each. So a job with one task for a GPU begins with ten: it is told less, and over sooner.
//
//   16 trials: 10 6       64 trials: 10 10 16 16 12
//
// A budget of time counts as the trials that one device measures in it (kTrialsASecond).
//
// And nothing is in flight unseen: a job with one task waits for its results (kNoneUnseen). A job with
// several tasks turns to another task meanwhile: its window holds a least generation of each task but one,
// and one whole generation at most.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "tuner/scheduler/proposal_window.h"
#include "tuner/scheduler/task_scheduler.h"

namespace mycc {

inline constexpr int64_t kLeastGeneration = 4, kLeastGenerationOfSlowBuilds = 10;
// A task with fewer whole generations has a small budget.
inline constexpr int64_t kGenerationsOfSmallBudget = 5;

// The speed of one device, roughly. It decides how large the generations are, and nothing else.
inline constexpr double kTrialsASecond = 4;

// The trials that a task has, where they are divided evenly.
inline int64_t EvenShare(const SchedulerConfig& config, int64_t tasks) {
  int64_t trials = config.max_trials;
  if (config.max_seconds > 0 && config.max_seconds * kTrialsASecond < static_cast<double>(trials))
    trials = static_cast<int64_t>(config.max_seconds * kTrialsASecond);
  return std::min(config.max_trials_per_task, trials / std::max<int64_t>(1, tasks));
}

inline bool HasSmallBudget(const SchedulerConfig& config, int64_t tasks) {
  return config.adapts_to_budget &&
         EvenShare(config, tasks) < kGenerationsOfSmallBudget * config.generation_size;
}

// The most candidates of a task's next generation, after `spent` ones.
inline int64_t MostTrials(const SchedulerConfig& config, int64_t tasks, int64_t spent) {
  if (!HasSmallBudget(config, tasks)) return std::numeric_limits<int64_t>::max();
  return std::clamp(spent, std::min(config.least_generation, config.generation_size), config.generation_size);
}

// The window (proposal_window.h) of a job whose devices are few. 0: a generation is measured while the next
// one is made.
inline uint32_t LeastWindow(const SchedulerConfig& config, int64_t tasks) {
  if (!HasSmallBudget(config, tasks)) return 0;
  if (tasks <= 1) return kNoneUnseen;
  return static_cast<uint32_t>(std::min(config.generation_size, config.least_generation * (tasks - 1)));
}

}  // namespace mycc
