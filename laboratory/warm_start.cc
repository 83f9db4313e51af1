#include "laboratory/warm_start.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace mycc {
namespace {

constexpr size_t kHistory = 16;
// A configuration that failed on a device counts as this many times slower than the device's best.
constexpr double kFailureRatio = 20;

std::string NamesOf(const RecordedSpace& space) {
  return absl::StrJoin(space.parameters, ", ",
                       [](std::string* out, const SpaceParameter& p) { out->append(p.name); });
}

// For each parameter here, its place in the other space, and the other's choices as choices here (-1: a value
// that is unknown here).
struct Translation {
  std::vector<size_t> place;
  std::vector<std::vector<int>> choice;
};

absl::StatusOr<Translation> Translate(const RecordedSpace& here, const RecordedSpace& other) {
  Translation translation;
  for (const SpaceParameter& parameter : here.parameters) {
    const auto found = std::ranges::find_if(
        other.parameters, [&](const SpaceParameter& p) { return p.name == parameter.name; });
    if (found == other.parameters.end() || other.parameters.size() != here.parameters.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "warm start from space \"", other.name, "\" of ", other.device, ": its parameters are ",
          NamesOf(other), "; expected those of \"", here.name, "\" of ", here.device, ": ", NamesOf(here)));
    }
    translation.place.push_back(static_cast<size_t>(found - other.parameters.begin()));
    std::vector<int>& choices = translation.choice.emplace_back();
    for (const std::string& value : found->values) {
      const auto known = std::ranges::find(parameter.values, value);
      choices.push_back(known == parameter.values.end() ? -1
                                                        : static_cast<int>(known - parameter.values.begin()));
    }
  }
  return translation;
}

std::optional<Choice> ChoiceHere(const Translation& translation, const std::vector<int>& choices) {
  Choice here;
  for (size_t p = 0; p < translation.place.size(); ++p) {
    here.push_back(translation.choice[p][static_cast<size_t>(choices[translation.place[p]])]);
    if (here.back() < 0) return std::nullopt;
  }
  return here;
}

// The mean over the devices of log(time / the device's best), by configuration. It is a mean of those devices
// alone that have the configuration.
std::vector<std::pair<double, Choice>> Ranked(const std::vector<PriorResult>& prior) {
  std::map<int, double> best;
  for (const PriorResult& result : prior) {
    if (!result.seconds) continue;
    double& seconds = best.emplace(result.device, *result.seconds).first->second;
    seconds = std::min(seconds, *result.seconds);
  }
  struct Standing {
    double sum = 0;
    int devices = 0, failures = 0;
  };
  std::map<Choice, Standing> standings;
  for (const PriorResult& result : prior) {
    Standing& standing = standings[result.choice];
    standing.sum += std::log(result.seconds ? *result.seconds / best[result.device] : kFailureRatio);
    ++standing.devices;
    standing.failures += !result.seconds;
  }
  std::vector<std::pair<double, Choice>> ranked;
  for (const auto& [choice, standing] : standings) {
    if (standing.failures < standing.devices) ranked.emplace_back(standing.sum / standing.devices, choice);
  }
  std::ranges::sort(ranked);
  return ranked;
}

}  // namespace

absl::StatusOr<WarmStart> WarmStartFrom(const SpaceReplay& replay,
                                        const std::vector<const RecordedSpace*>& others) {
  WarmStart warm;
  for (size_t device = 0; device < others.size(); ++device) {
    const RecordedSpace& other = *others[device];
    MYCC_ASSIGN_OR_RETURN(const Translation translation, Translate(replay.space(), other));
    for (const RecordedConfiguration& configuration : other.configurations) {
      const std::optional<Choice> choice = ChoiceHere(translation, configuration.choices);
      if (!choice) continue;
      warm.prior.push_back({*choice, TimeOf(configuration), static_cast<int>(device)});
    }
  }
  for (const auto& [ratio, choice] : Ranked(warm.prior)) {
    if (warm.history.size() == kHistory) break;
    if (!replay.NumberOf(choice)) continue;
    MYCC_ASSIGN_OR_RETURN(Trace trace, replay.sketch().instantiate(choice));
    warm.history.push_back(std::move(trace));
  }
  if (!others.empty() && warm.history.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "warm start of \"", replay.space().name, "\" of ", replay.space().device,
        ": no configuration of the other devices is one here; expected results of the same space"));
  }
  return warm;
}

}  // namespace mycc
