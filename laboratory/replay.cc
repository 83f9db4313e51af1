#include "laboratory/replay.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "laboratory/statistics.h"

namespace mycc {
namespace {

absl::Status Unfit(const RecordedSpace& space, const std::string& what, const std::string& expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("space \"", space.name, "\" of ", space.device, ": ", what, "; expected ", expected));
}

absl::Status CheckConfiguration(const RecordedSpace& space, size_t number) {
  const RecordedConfiguration& configuration = space.configurations[number];
  const std::string where = absl::StrCat("configuration ", number);
  if (configuration.choices.size() != space.parameters.size()) {
    return Unfit(space, absl::StrCat(where, " has ", configuration.choices.size(), " choices"),
                 absl::StrCat(space.parameters.size(), ", one for each parameter"));
  }
  for (size_t p = 0; p < space.parameters.size(); ++p) {
    const int values = static_cast<int>(space.parameters[p].values.size());
    if (configuration.choices[p] < 0 || configuration.choices[p] >= values) {
      return Unfit(
          space, absl::StrCat(where, ": choice ", configuration.choices[p], " of ", space.parameters[p].name),
          absl::StrCat("0 to ", values - 1));
    }
  }
  for (const double seconds : configuration.run_seconds) {
    if (!(std::isfinite(seconds) && seconds > 0))
      return Unfit(space, absl::StrCat(where, " took ", seconds, " s"), "positive, finite times");
  }
  if (!(std::isfinite(configuration.compile_seconds) && configuration.compile_seconds >= 0)) {
    return Unfit(space, absl::StrCat(where, " was compiled in ", configuration.compile_seconds, " s"),
                 "a finite time");
  }
  return absl::OkStatus();
}

// A name that a trace can hold.
std::string DecisionName(const std::string& parameter) {
  std::string name = parameter;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

Decision DecisionFor(const SpaceParameter& parameter) {
  Decision decision{DecisionName(parameter.name), {}, parameter.ordered};
  for (const std::string& text : parameter.values) {
    int64_t value = 0;
    if (!absl::SimpleAtoi(text, &value) || (!decision.choices.empty() && value <= decision.choices.back())) {
      decision.choices.clear();
      break;
    }
    decision.choices.push_back(value);
  }
  if (decision.choices.empty()) {
    for (size_t i = 0; i < parameter.values.size(); ++i) decision.choices.push_back(static_cast<int64_t>(i));
  }
  return decision;
}

// The configuration nearest to the middle of every parameter: a guess that knows nothing of the times.
Choice MiddleOf(const RecordedSpace& space) {
  const RecordedConfiguration* nearest = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const RecordedConfiguration& configuration : space.configurations) {
    double distance = 0;
    for (size_t p = 0; p < space.parameters.size(); ++p) {
      const double last = static_cast<double>(space.parameters[p].values.size() - 1);
      const double off = last == 0 ? 0 : configuration.choices[p] / last - 0.5;
      distance += off * off;
    }
    if (distance >= least) continue;
    least = distance;
    nearest = &configuration;
  }
  return nearest->choices;
}

Sketch SketchFor(const RecordedSpace& space) {
  Sketch sketch;
  sketch.name = "recorded";
  for (const SpaceParameter& parameter : space.parameters)
    sketch.space.decisions.push_back(DecisionFor(parameter));
  const auto legal = std::make_shared<absl::flat_hash_set<Choice>>();
  for (const RecordedConfiguration& configuration : space.configurations)
    legal->insert(configuration.choices);
  sketch.space.constraint = [legal](const Choice& choice) { return legal->contains(choice); };
  sketch.default_choice = MiddleOf(space);
  sketch.instantiate = [decisions = sketch.space.decisions](const Choice& choice) -> absl::StatusOr<Trace> {
    Trace trace;
    trace.sketch = "recorded";
    trace.decisions.reserve(choice.size());
    StepArg::Ints values;
    for (size_t d = 0; d < decisions.size(); ++d) {
      const int64_t value = decisions[d].choices[choice[d]];
      trace.decisions.emplace_back(decisions[d].name, value);
      values.push_back(value);
    }
    // No step describes another tuner's kernel. One that carries the values makes points differ.
    trace.steps.push_back({"split", {StepArg{std::string("recorded")}, StepArg{std::move(values)}}});
    return trace;
  };
  return sketch;
}

}  // namespace

absl::StatusOr<Replay> Replay::Make(RecordedSpace given) {
  Replay replay(std::move(given));
  const RecordedSpace& space = replay.space_;
  if (space.parameters.empty()) return Unfit(space, "no parameter", "at least one");
  absl::flat_hash_set<std::string> names;
  for (const SpaceParameter& parameter : space.parameters) {
    if (parameter.values.empty())
      return Unfit(space, absl::StrCat("parameter ", parameter.name, " has no value"), "at least one");
    if (!names.insert(DecisionName(parameter.name)).second)
      return Unfit(space, absl::StrCat("a second parameter ", parameter.name), "names that differ");
  }
  double cost = 0;
  replay.optimum_seconds_ = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < space.configurations.size(); ++i) {
    MYCC_RETURN_IF_ERROR(CheckConfiguration(space, i));
    const RecordedConfiguration& configuration = space.configurations[i];
    if (!replay.numbers_.emplace(configuration.choices, static_cast<int>(i)).second)
      return Unfit(space, absl::StrCat("configuration ", i, " was recorded before"), "each one once");
    const bool failed = configuration.run_seconds.empty();
    replay.failures_ += failed;
    replay.means_.push_back(failed ? std::nullopt : std::make_optional(Mean(configuration.run_seconds)));
    if (!failed) replay.optimum_seconds_ = std::min(replay.optimum_seconds_, *replay.means_.back());
    replay.compile_times_known_ |= configuration.compile_seconds > 0;
    cost += replay.Measure(static_cast<int>(i), nullptr).cost_seconds;
  }
  if (replay.failures_ == static_cast<int>(space.configurations.size()))
    return Unfit(space, absl::StrCat("none of ", replay.failures_, " configurations succeeded"),
                 "at least one");
  replay.mean_cost_seconds_ = cost / static_cast<double>(space.configurations.size());
  for (size_t i = 0; i < space.configurations.size(); ++i)
    replay.fractions_.push_back(replay.FractionOf(static_cast<int>(i)));
  std::sort(replay.fractions_.rbegin(), replay.fractions_.rend());
  replay.sketch_ = SketchFor(space);
  return replay;
}

std::optional<int> Replay::NumberOf(const Choice& choice) const {
  const auto it = numbers_.find(choice);
  return it == numbers_.end() ? std::nullopt : std::make_optional(it->second);
}

double Replay::FractionOf(int configuration) const {
  const std::optional<double>& seconds = means_[configuration];
  return seconds ? optimum_seconds_ / *seconds : 0;
}

Evaluation Replay::Measure(int configuration, Rng* noise) const {
  const RecordedConfiguration& recorded = space_.configurations[configuration];
  Evaluation evaluation{configuration, means_[configuration], recorded.compile_seconds};
  for (const double seconds : recorded.run_seconds) evaluation.cost_seconds += seconds;
  if (noise != nullptr && evaluation.seconds)
    evaluation.seconds = recorded.run_seconds[noise->Below(static_cast<int>(recorded.run_seconds.size()))];
  return evaluation;
}

}  // namespace mycc
