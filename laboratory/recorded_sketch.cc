#include "laboratory/recorded_sketch.h"

#include <cctype>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace mycc {
namespace {

// A name that a trace can print and read back.
std::string DecisionName(const std::string& name) {
  std::string word;
  for (const char c : name)
    word += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' ? c : '_';
  return word.empty() ? "_" : word;
}

Decision DecisionOf(const SpaceParameter& parameter, const std::vector<Decision>& earlier) {
  Decision decision;
  decision.name = DecisionName(parameter.name);
  for (const Decision& other : earlier) {
    if (other.name == decision.name) decision.name += absl::StrCat("_", earlier.size());
  }
  decision.ordered = parameter.ordered;
  for (const std::string& value : parameter.values) {
    int64_t integer = 0;
    if (!parameter.ordered || !absl::SimpleAtoi(value, &integer)) break;
    decision.choices.push_back(integer);
  }
  if (decision.choices.size() == parameter.values.size()) return decision;
  decision.choices.clear();
  for (size_t i = 0; i < parameter.values.size(); ++i) decision.choices.push_back(static_cast<int64_t>(i));
  return decision;
}

Choice DefaultChoice(const RecordedSpace& space, const ConfigurationIndex& index) {
  if (!space.default_choices.empty() && index.Find(space.default_choices) >= 0) return space.default_choices;
  const RecordedConfiguration* nearest = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const RecordedConfiguration& configuration : space.configurations) {
    double distance = 0;
    for (size_t p = 0; p < space.parameters.size(); ++p) {
      const double last = static_cast<double>(space.parameters[p].values.size()) - 1;
      if (last > 0) distance += std::abs(configuration.choices[p] / last - 0.5);
    }
    if (distance >= least) continue;
    least = distance;
    nearest = &configuration;
  }
  return nearest->choices;
}

}  // namespace

ConfigurationIndex::ConfigurationIndex(const RecordedSpace& space) {
  place_of_.reserve(space.configurations.size());
  for (size_t i = 0; i < space.configurations.size(); ++i)
    place_of_.emplace(space.configurations[i].choices, static_cast<int>(i));
}

int ConfigurationIndex::Find(const Choice& choice) const {
  const auto found = place_of_.find(choice);
  return found == place_of_.end() ? -1 : found->second;
}

Sketch RecordedSketch(std::shared_ptr<const RecordedSpace> space, const std::string& name) {
  MYCC_CHECK(!space->configurations.empty()) << space->name << " has no configuration";
  Sketch sketch;
  sketch.name = name;
  for (const SpaceParameter& parameter : space->parameters)
    sketch.space.decisions.push_back(DecisionOf(parameter, sketch.space.decisions));
  const auto index = std::make_shared<const ConfigurationIndex>(*space);
  sketch.default_choice = DefaultChoice(*space, *index);
  auto listed = std::make_shared<std::vector<Choice>>();
  for (const RecordedConfiguration& configuration : space->configurations)
    listed->push_back(configuration.choices);
  sketch.space.listed = std::move(listed);
  sketch.space.constraint = [space, index](const Choice& choice) { return index->Find(choice) >= 0; };
  sketch.instantiate = [name, decisions = sketch.space.decisions,
                        index](const Choice& choice) -> absl::StatusOr<Trace> {
    if (index->Find(choice) < 0)
      return absl::FailedPreconditionError("no configuration of the recorded space");
    Trace trace;
    trace.sketch = name;
    StepArg::Ints numbers;
    for (size_t d = 0; d < decisions.size(); ++d) {
      trace.decisions.emplace_back(decisions[d].name, decisions[d].choices[choice[d]]);
      numbers.push_back(choice[d]);
    }
    // A search tells candidates apart by their steps. This one is never replayed.
    trace.steps.push_back({"split", {StepArg{std::string("configuration")}, StepArg{std::move(numbers)}}});
    return trace;
  };
  return sketch;
}

}  // namespace mycc
