#include "tuner/scheduler/gain_forecast.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <limits>

namespace mycc {
namespace {

constexpr double kMinute = 60;
constexpr int kLeastSteps = 3;         // that a task's rate is of
constexpr size_t kPauses = 16;         // the latest ones, whose median is the pace
constexpr double kMostAMinute = 1000;  // generations

// Generations that are proposed in a minute.
double Pace(const std::vector<ProposedAt>& proposed) {
  std::vector<double> pauses;
  for (size_t i = proposed.size(); i-- > 1 && pauses.size() < kPauses;)
    pauses.push_back(proposed[i].seconds - proposed[i - 1].seconds);
  if (pauses.empty()) return 0;
  const auto middle = pauses.begin() + static_cast<std::ptrdiff_t>(pauses.size() / 2);
  std::nth_element(pauses.begin(), middle, pauses.end());
  return *middle > kMinute / kMostAMinute ? kMinute / *middle : kMostAMinute;
}

// The number of generations of each task that were proposed in the last minute.
std::vector<int> InTheLastMinute(const std::vector<ProposedAt>& proposed, double now, size_t tasks) {
  std::vector<int> counts(tasks, 0);
  for (size_t i = proposed.size(); i-- > 0 && proposed[i].seconds > now - kMinute;)
    ++counts[proposed[i].task];
  return counts;
}

// The best times of a task, from its first valid one on.
std::vector<double> Fall(const TaskProgress& task) {
  std::vector<double> fall;
  for (const std::optional<double>& best : task.best_seconds) {
    if (best) fall.push_back(*best);
  }
  return fall;
}

// Whether the second valid generations speak for all: tasks that may have one, and had none, take little of
// the latency.
bool IsCovered(const SchedulerConfig& config, const std::vector<TaskProgress>& tasks, double latency) {
  constexpr double kMostUnknown = 0.1;
  double unknown = 0;
  for (const TaskProgress& task : tasks) {
    const std::vector<double> fall = Fall(task);
    if (fall.size() != 1) continue;
    const double seconds = task.info.weight * fall[0];
    if (IsOpen(config, task) && seconds >= config.min_share * latency) unknown += seconds;
  }
  return unknown <= kMostUnknown * latency;
}

// The share that second generations gained; nullopt before the first of them.
std::optional<double> SecondGain(const std::vector<TaskProgress>& tasks) {
  double before = 0, after = 0;
  for (const TaskProgress& task : tasks) {
    const std::vector<double> fall = Fall(task);
    if (fall.size() < 2) continue;
    before += task.info.weight * fall[0];
    after += task.info.weight * fall[1];
  }
  return before > 0 ? std::make_optional(1 - after / before) : std::nullopt;
}

// A task's next generations, as they are expected: in seconds of one call.
struct Prospect {
  double first_gain = 0;
  double generations = 1;  // so far
  double taken = 0;        // in the minute

  double Take() { return first_gain * generations / (generations + taken++); }
};

// `recent`: the number of its generations in the last minute.
Prospect ProspectOf(const std::vector<double>& fall, int recent, double second_gain) {
  if (fall.empty()) return {};
  const int steps = static_cast<int>(fall.size()) - 1;
  const int window = std::min(steps, std::max(kLeastSteps, recent));
  double gain = fall[steps - window] - fall[steps];
  gain += std::max(0, kLeastSteps - window) * second_gain * fall[steps];
  return {gain / std::max(kLeastSteps, window), static_cast<double>(fall.size())};
}

}  // namespace

std::optional<GainForecast> ForecastMinute(SchedulerConfig config, std::vector<TaskProgress> tasks,
                                           const std::vector<ProposedAt>& proposed, double now) {
  const std::optional<double> second_gain = SecondGain(tasks);
  if (now < kMinute || !second_gain) return std::nullopt;
  GainForecast forecast;
  const std::vector<int> recent = InTheLastMinute(proposed, now, tasks.size());
  std::vector<Prospect> prospects;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const TaskProgress& task = tasks[i];
    if (task.best_seconds.empty() && !task.exhausted) return std::nullopt;
    const std::vector<double> fall = Fall(task);
    prospects.push_back(ProspectOf(fall, recent[i], *second_gain));
    if (!fall.empty()) forecast.latency_seconds += task.info.weight * fall.back();
  }
  if (!IsCovered(config, tasks, forecast.latency_seconds)) return std::nullopt;
  config.max_trials = std::numeric_limits<int64_t>::max();
  for (double left = Pace(proposed); left > 0; left -= 1) {
    const TaskChoice choice = NextTask(config, tasks, 0);
    if (!choice.task) break;
    TaskProgress& task = tasks[*choice.task];
    const double gain = prospects[*choice.task].Take();
    forecast.gain_seconds += std::min(left, 1.0) * task.info.weight * gain;
    ++task.generations;
    task.trials += std::max<int64_t>(config.generation_size, 1);
    task.best_seconds.push_back(task.best_seconds.back());
    if (auto& best = task.best_seconds.back()) *best -= gain;
  }
  return forecast;
}

std::optional<double> GainOfTwice(const std::vector<TrialFall>& tasks) {
  constexpr double kFalling = 0.5;  // of the gain, from one doubling to the next
  double known = 0, gain = 0;
  for (const TrialFall& task : tasks) {
    if (task.best.size() < 2) continue;
    const auto [trials, now] = task.best.back();
    const auto from_half = [trials = trials](const auto& point) {
      return std::abs(2 * point.first - trials);
    };
    const double before =
        std::ranges::min_element(task.best.begin(), task.best.end() - 1, {}, from_half)->second;
    known += task.weight * now;
    gain += kFalling * task.weight * (before - now);
  }
  return known > 0 ? std::make_optional(std::min(gain / known, 1.0)) : std::nullopt;
}

std::optional<double> ForecastTwice(const SchedulerConfig& config, const std::vector<TaskProgress>& tasks,
                                    double now) {
  constexpr double kLeastSeconds = 2;
  if (now < kLeastSeconds) return std::nullopt;
  std::vector<TrialFall> falls;
  double latency = 0;
  for (const TaskProgress& task : tasks) {
    if (task.best_seconds.empty() && !task.exhausted) return std::nullopt;
    TrialFall fall{task.info.weight, {}};
    for (size_t g = 0; g < task.best_seconds.size(); ++g) {
      if (task.best_seconds[g]) fall.best.emplace_back(task.trials_seen[g], *task.best_seconds[g]);
    }
    // One without a valid candidate is still looked after (NextTask).
    if (fall.best.empty() && IsOpen(config, task) && task.generations < config.patience) return std::nullopt;
    if (fall.best.empty()) continue;
    latency += fall.weight * fall.best.back().second;
    falls.push_back(std::move(fall));
  }
  return IsCovered(config, tasks, latency) ? GainOfTwice(falls) : std::nullopt;
}

}  // namespace mycc
