// Chooses the task of a job that gets the next generation: the one with the largest expected gain in weighted
// latency (Ansor's gradient with its similarity term). Pure functions of values; the time is an argument.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mycc {

struct TaskInfo {
  double weight = 1;   // occurrences in the model
  double flops = 0;    // of one call; 0 when negligible
  std::string family;  // tasks of one family should reach like FLOP/s; empty: like no other
};

// A task's progress, as the next decision sees it.
struct TaskProgress {
  TaskInfo info;
  int generations = 0;  // generations proposed, those in flight included
  int64_t trials = 0;   // candidates proposed, those in flight included
  // The fastest candidate after each generation whose outcomes may be seen; nullopt while none was valid.
  std::vector<std::optional<double>> best_seconds;
  bool exhausted = false;  // the search has nothing new
};

struct SchedulerConfig {
  int64_t max_trials = 1000;  // of all tasks
  int64_t max_trials_per_task = 1000;
  double max_seconds = 0;  // 0: no limit
  double alpha = 0.2;      // weight of the recent gain against the possible gain
  double beta = 2;         // a task is expected to reach 1 / beta of the FLOP/s of the best of its family
  int window = 3;          // generations that count as recent
  int patience = 3;        // generations without a valid result before a task has to wait for its turn
};

enum class StopReason : uint8_t { kTrials, kTime, kExhausted };

struct TaskChoice {
  std::optional<int> task;         // index
  std::optional<StopReason> stop;  // set when there is no task
  // Weighted, of the chosen task's next generation; 0 where nothing is known yet.
  double expected_gain_seconds = 0;
};

// Every task gets one generation first. Then the task with the greatest gain gets the next one. A task
// without a valid result comes first until its patience ends, and later whenever it is behind half an even
// share: it neither starves nor drains the others.
TaskChoice NextTask(const SchedulerConfig& config, const std::vector<TaskProgress>& tasks,
                    double elapsed_seconds);

}  // namespace mycc
