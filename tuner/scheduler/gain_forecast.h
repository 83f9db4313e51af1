// Forecasts what the next minute of a search gains, from how the best times of its tasks fell so far. Pure
// functions of values; the time is an argument.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tuner/scheduler/task_scheduler.h"

namespace mycc {

struct GainForecast {
  double latency_seconds = 0;  // weighted: the sum over the tasks of weight * best
  double gain_seconds = 0;     // of the latency, in the next minute
  double Share() const { return latency_seconds > 0 ? gain_seconds / latency_seconds : 0; }
};

// A generation of a task that was proposed.
struct ProposedAt {
  int task = 0;
  double seconds = 0;  // of the search
};

// `proposed`: the generations of all tasks in order; `now` in seconds of the search. Nullopt while too little
// is known: in the first minute, while a task has not been measured, and while tasks with one generation take
// more than a tenth of the latency, unless they are to have no other.
//
// A task's next generation gains as much as the mean of its latest ones, those of the last minute and three
// at least. Where it has had fewer, the second generations of all tasks stand for the missing ones. Further
// generations gain less: gains fall as one over the number of generations. The minute's generations go to the
// tasks that NextTask chooses, though the trials may be used up before. Their number follows from the median
// pause between proposals, so a time without workers counts little.
std::optional<GainForecast> ForecastMinute(SchedulerConfig config, std::vector<TaskProgress> tasks,
                                           const std::vector<ProposedAt>& proposed, double now);

// How a task's best time fell with its trials.
struct TrialFall {
  double weight = 1;
  std::vector<std::pair<int64_t, double>> best;  // trials so far, and the best of them in seconds
};

// The share of the weighted latency that as many trials again are expected to gain. Each doubling of a task's
// trials gains half as much as the one before. The last one is what was gained since the generation that
// ended nearest to half of the trials. A task with one generation alone gains the share of the others.
// Nullopt where no task has two.
std::optional<double> GainOfTwice(const std::vector<TrialFall>& tasks);

// The same of a search's tasks, `now` in seconds of the search. Nullopt while too little is known: in the
// first two seconds, which cheap trials may all have, and until the second generations of tasks that take
// nine tenths of the latency.
std::optional<double> ForecastTwice(const SchedulerConfig& config, const std::vector<TaskProgress>& tasks,
                                    double now);

}  // namespace mycc
