#include "laboratory/replay.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/plural.h"
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
    return Unfit(space, absl::StrCat(where, " has ", HowMany(configuration.choices.size(), "choice")),
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
  std::vector<double> times = configuration.run_seconds;
  if (configuration.seconds) times.push_back(*configuration.seconds);
  for (const double seconds : times) {
    if (!(std::isfinite(seconds) && seconds > 0))
      return Unfit(space, absl::StrCat(where, " took ", seconds, " s"), "positive, finite times");
  }
  if (!(std::isfinite(configuration.compile_seconds) && configuration.compile_seconds >= 0)) {
    return Unfit(space, absl::StrCat(where, " was compiled in ", configuration.compile_seconds, " s"),
                 "a finite time");
  }
  const double measuring = configuration.measuring_seconds.value_or(0);
  if (!(std::isfinite(measuring) && measuring >= 0))
    return Unfit(space, absl::StrCat(where, " was measured in ", measuring, " s"), "a finite time");
  return absl::OkStatus();
}

}  // namespace

std::optional<double> TimeOf(const RecordedConfiguration& configuration) {
  if (configuration.run_seconds.empty()) return std::nullopt;
  return configuration.seconds ? configuration.seconds : Mean(configuration.run_seconds);
}

absl::StatusOr<SpaceReplay> SpaceReplay::Make(RecordedSpace given) {
  SpaceReplay replay(std::move(given));
  const RecordedSpace& space = *replay.space_;
  if (space.parameters.empty()) return Unfit(space, "no parameter", "at least one");
  absl::flat_hash_set<std::string> names;
  for (const SpaceParameter& parameter : space.parameters) {
    if (parameter.values.empty())
      return Unfit(space, absl::StrCat("parameter ", parameter.name, " has no value"), "at least one");
    if (!names.insert(parameter.name).second)
      return Unfit(space, absl::StrCat("a second parameter ", parameter.name), "names that differ");
  }
  absl::flat_hash_set<Choice> known;
  double cost = 0;
  replay.optimum_seconds_ = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < space.configurations.size(); ++i) {
    MYCC_RETURN_IF_ERROR(CheckConfiguration(space, i));
    const RecordedConfiguration& configuration = space.configurations[i];
    if (!known.insert(configuration.choices).second)
      return Unfit(space, absl::StrCat("configuration ", i, " was recorded before"), "each one once");
    const bool failed = configuration.run_seconds.empty();
    replay.failures_ += failed;
    replay.seconds_.push_back(TimeOf(configuration));
    if (!failed) replay.optimum_seconds_ = std::min(replay.optimum_seconds_, *replay.seconds_.back());
    replay.compile_times_known_ |= configuration.compile_seconds > 0;
    cost += replay.Measure(static_cast<int>(i), nullptr).cost_seconds;
  }
  if (replay.failures_ == static_cast<int>(space.configurations.size()))
    return Unfit(space, absl::StrCat("none of ", HowMany(replay.failures_, "configuration"), " succeeded"),
                 "at least one");
  replay.mean_cost_seconds_ = cost / static_cast<double>(space.configurations.size());
  for (size_t i = 0; i < space.configurations.size(); ++i)
    replay.fractions_.push_back(replay.FractionOf(static_cast<int>(i)));
  std::sort(replay.fractions_.rbegin(), replay.fractions_.rend());
  replay.index_ = std::make_shared<const ConfigurationIndex>(space);
  replay.sketch_ = RecordedSketch(replay.space_);
  return replay;
}

std::optional<int> SpaceReplay::NumberOf(const Choice& choice) const {
  const int number = index_->Find(choice);
  return number < 0 ? std::nullopt : std::make_optional(number);
}

double SpaceReplay::FractionOf(int configuration) const {
  const std::optional<double>& seconds = seconds_[configuration];
  return seconds ? optimum_seconds_ / *seconds : 0;
}

Evaluation SpaceReplay::Measure(int configuration, Rng* noise) const {
  const RecordedConfiguration& recorded = space_->configurations[configuration];
  Evaluation evaluation{configuration, seconds_[configuration], recorded.compile_seconds};
  if (recorded.measuring_seconds) {
    evaluation.cost_seconds += *recorded.measuring_seconds;
  } else {
    for (const double seconds : recorded.run_seconds) evaluation.cost_seconds += seconds;
  }
  if (noise != nullptr && evaluation.seconds)
    evaluation.seconds = recorded.run_seconds[noise->Below(static_cast<int>(recorded.run_seconds.size()))];
  return evaluation;
}

}  // namespace mycc
