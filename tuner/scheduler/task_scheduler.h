// Chooses the task of a job that gets the next generation: the one with the largest expected gain in weighted
// latency (Ansor's gradient with its similarity term). Pure functions of values; the time is an argument.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace mycc {

struct TaskInfo {
  double weight = 1;           // occurrences in the model
  double flops = 0;            // of one call; 0 when negligible
  std::string family;          // tasks of one family should reach like FLOP/s; empty: like no other
  double rough_cost = 0;       // a guess of one call's time, in any unit, before anything is measured
  int64_t earlier_trials = 0;  // of an earlier search of the same job, which count against its limits
};

// A task's progress, as the next decision sees it.
struct TaskProgress {
  TaskInfo info;
  int generations = 0;  // generations proposed, those in flight included
  int64_t trials = 0;   // candidates proposed, those in flight included
  // The fastest candidate after each generation whose outcomes may be seen; nullopt while none was valid.
  std::vector<std::optional<double>> best_seconds;
  std::vector<int64_t> trials_seen;  // this search's candidates up to each of these generations
  bool exhausted = false;            // the search has nothing new
};

struct SchedulerConfig {
  int64_t max_trials = 1000;  // of all tasks
  int64_t max_trials_per_task = 1000;
  double max_seconds = 0;  // 0: no limit
  double alpha = 0.2;      // weight of the recent gain against the possible gain
  double beta = 2;         // a task is expected to reach 1 / beta of the FLOP/s of the best of its family
  int window = 3;          // generations that count as recent
  int patience = 3;        // generations without a valid result before a task has to wait for its turn
  // Candidates of a whole generation; 0: generations are counted, whatever they hold.
  int64_t generation_size = 0;
  // Candidates of the first generation of a task that seems to matter less than the average one. Tasks then
  // begin in the order of weight and rough cost. 0: the tasks begin in their order, with whole generations.
  int64_t first_trials = 0;
  // A small budget is spent in small generations (generation_plan.h). For searches that learn from outcomes.
  bool adapts_to_budget = false;
  // Candidates of the first of these generations (generation_plan.h).
  int64_t least_generation = 4;
  // A task whose share of the weighted latency is less has only its first generation, while others are open.
  double min_share = 0;
  // The search is over when the next minute is expected to gain a smaller share of the weighted latency
  // (gain_forecast.h); 0: whatever it is expected to gain.
  double min_gain = 0;
  // The same when as many trials again as there were are expected to gain a smaller share: for a search
  // without a limit of time.
  double min_gain_of_twice = 0;
};

enum class StopReason : uint8_t { kTrials, kTime, kExhausted, kGain };

struct TaskChoice {
  std::optional<int> task;                                    // index
  std::optional<StopReason> stop;                             // set when there is no task
  int64_t most_trials = std::numeric_limits<int64_t>::max();  // of the task's next generation
  // Weighted, of the chosen task's next generation; 0 where nothing is known yet.
  double expected_gain_seconds = 0;
};

// Whether the task may have another generation.
bool IsOpen(const SchedulerConfig& config, const TaskProgress& task);

// Every task gets one generation first; a small job that is limited as a whole leaves each task its share, so
// that as many as possible have their default schedule measured. Then the task with the greatest gain gets
// the next one. A task without a valid result comes first until its patience ends, and later whenever it is
// behind half an even share: it neither starves nor drains the others.
TaskChoice NextTask(const SchedulerConfig& config, const std::vector<TaskProgress>& tasks,
                    double elapsed_seconds);

}  // namespace mycc
