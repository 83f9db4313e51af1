#include "mycc_tune/decision_worth.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

constexpr char kSketch[] = "sketch";
constexpr double kNone = std::numeric_limits<double>::infinity();

struct Counted {
  int64_t candidates = 0, failed = 0;
  double best = kNone;
  double number = 0;  // orders equal times
};

// The decisions of one task.
struct TaskDecisions {
  std::map<std::string, std::map<std::string, Counted>> values;  // by decision and value
  std::map<std::string, Counted> without;                        // by decision: candidates that lack it
  std::map<std::string, std::string> chosen;                     // of the fastest candidate
  double best = kNone;
};

std::map<std::string, std::string> ValuesOf(const DecidedCandidate& candidate) {
  std::map<std::string, std::string> values;
  for (const auto& [name, value] : candidate.decisions) values[name] = absl::StrCat(value);
  if (!candidate.sketch.empty()) values[kSketch] = candidate.sketch;
  return values;
}

void Count(const DecidedCandidate& candidate, Counted* counted) {
  ++counted->candidates;
  if (candidate.seconds > 0) {
    counted->best = std::min(counted->best, candidate.seconds);
  } else {
    ++counted->failed;
  }
}

double BestWithout(const TaskDecisions& task, const std::string& decision, const std::string& value) {
  const auto lacking = task.without.find(decision);
  double best = lacking == task.without.end() ? kNone : lacking->second.best;
  for (const auto& [other, counted] : task.values.at(decision))
    if (other != value) best = std::min(best, counted.best);
  return best;
}

double OrNone(double seconds) { return seconds == kNone ? 0 : seconds; }

DecisionWorth WorthOf(uint32_t number, const TaskDecisions& task, const std::string& decision) {
  DecisionWorth worth;
  worth.task = number;
  worth.decision = decision;
  const auto chosen = task.chosen.find(decision);
  if (chosen != task.chosen.end()) {
    worth.chosen = chosen->second;
    const double without = BestWithout(task, decision, worth.chosen);
    if (without != kNone) worth.without = without / task.best;
  }
  std::vector<std::tuple<double, double, DecisionValue>> sorted;
  for (const auto& [value, counted] : task.values.at(decision)) {
    sorted.emplace_back(counted.best, counted.number,
                        DecisionValue{value, counted.candidates, counted.failed, OrNone(counted.best),
                                      OrNone(BestWithout(task, decision, value))});
  }
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  for (auto& [best, order, value] : sorted) worth.values.push_back(std::move(value));
  return worth;
}

// Equal times: the smaller decisions in the order of the texts.
bool IsFaster(const DecidedCandidate& candidate, const std::map<std::string, std::string>& values,
              const TaskDecisions& task) {
  if (candidate.seconds <= 0) return false;
  return candidate.seconds < task.best || (candidate.seconds == task.best && values < task.chosen);
}

}  // namespace

std::vector<DecisionWorth> WorthOfDecisions(const std::vector<DecidedCandidate>& candidates) {
  std::map<uint32_t, TaskDecisions> tasks;
  for (const DecidedCandidate& candidate : candidates) {
    TaskDecisions& task = tasks[candidate.task];
    std::map<std::string, std::string> values = ValuesOf(candidate);
    for (const auto& [decision, value] : values) {
      Counted& counted = task.values[decision][value];
      const auto number = candidate.decisions.find(decision);
      if (number != candidate.decisions.end()) counted.number = static_cast<double>(number->second);
      Count(candidate, &counted);
    }
    if (IsFaster(candidate, values, task)) {
      task.best = candidate.seconds;
      task.chosen = std::move(values);
    }
  }
  for (const DecidedCandidate& candidate : candidates) {
    TaskDecisions& task = tasks[candidate.task];
    const std::map<std::string, std::string> values = ValuesOf(candidate);
    for (const auto& [decision, counted] : task.values)
      if (values.count(decision) == 0) Count(candidate, &task.without[decision]);
  }
  std::vector<DecisionWorth> worths;
  for (const auto& [number, task] : tasks) {
    const auto begin = static_cast<std::ptrdiff_t>(worths.size());
    for (const auto& [decision, values] : task.values)
      if (values.size() > 1) worths.push_back(WorthOf(number, task, decision));
    std::stable_sort(worths.begin() + begin, worths.end(),
                     [](const DecisionWorth& a, const DecisionWorth& b) { return a.without > b.without; });
  }
  return worths;
}

}  // namespace mycc
