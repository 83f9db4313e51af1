#include "laboratory/result_table.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/plural.h"
#include "base/status.h"

namespace mycc {
namespace {

bool IsOrderedNumber(const PythonValue& value) {
  return value.IsNumber() && !std::holds_alternative<bool>(value.value);
}

// A parameter of the space, and how the table's values become its own.
struct ParameterMap {
  SpaceParameter parameter;
  int name = -1;             // the table's; -1: the table has none, and the parameter one value
  std::vector<int> written;  // by the parameter's own number: the place among the values as they were given
  std::vector<int> of_row;   // by the table's number of a value: the parameter's; -1: it has no such value
};

ParameterMap MapParameter(const ResultTable& table, const std::string& name,
                          const std::vector<PythonValue>& values) {
  ParameterMap map;
  map.parameter.name = name;
  map.parameter.ordered = std::ranges::all_of(values, IsOrderedNumber);
  map.written.resize(values.size());
  std::iota(map.written.begin(), map.written.end(), 0);
  if (map.parameter.ordered) {
    std::ranges::stable_sort(
        map.written, [&](int a, int b) { return CompareValues(values[a], values[b]).value_or(0) < 0; });
  }
  absl::flat_hash_map<std::string, int> number_of;
  for (size_t i = 0; i < map.written.size(); ++i) {
    const PythonValue& value = values[map.written[i]];
    map.parameter.values.push_back(ValueText(value));
    number_of.emplace(EqualityKey(value), static_cast<int>(i));
  }
  const auto found = std::ranges::find(table.names(), name);
  if (found == table.names().end()) return map;
  map.name = static_cast<int>(found - table.names().begin());
  for (const PythonValue& value : table.values(map.name)) {
    const auto number = number_of.find(EqualityKey(value));
    map.of_row.push_back(number == number_of.end() ? -1 : number->second);
  }
  return map;
}

std::vector<ParameterMap> MapParameters(const ResultTable& table, const ConstrainedSpace* space) {
  std::vector<ParameterMap> maps;
  if (space != nullptr) {
    for (const ConstrainedParameter& parameter : space->parameters())
      maps.push_back(MapParameter(table, parameter.name, parameter.values));
  } else {
    for (size_t n = 0; n < table.names().size(); ++n)
      maps.push_back(MapParameter(table, table.names()[n], table.values(static_cast<int>(n))));
  }
  return maps;
}

// Refuses a table that distinguishes results by what the space does not have.
absl::Status CheckNames(const ResultTable& table, const std::vector<ParameterMap>& maps,
                        const std::string& where) {
  for (size_t n = 0; n < table.names().size(); ++n) {
    const bool is_known =
        std::ranges::any_of(maps, [&](const ParameterMap& map) { return map.name == static_cast<int>(n); });
    if (is_known || table.values(static_cast<int>(n)).size() <= 1) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": results differ in `", table.names()[n], "`, which is no parameter of the space; expected ",
        absl::StrJoin(maps, ", ",
                      [](std::string* out, const ParameterMap& map) { out->append(map.parameter.name); })));
  }
  return absl::OkStatus();
}

// The choices of a row; empty: the space has no such configuration.
absl::StatusOr<std::vector<int>> ChoicesOf(const ResultTable& table, const ResultTable::Row& row,
                                           const std::vector<ParameterMap>& maps,
                                           const ConstrainedSpace* space, const std::string& where) {
  std::vector<int> choices, written;
  for (const ParameterMap& map : maps) {
    const int value =
        map.name >= 0 && map.name < static_cast<int>(row.values.size()) ? row.values[map.name] : -1;
    int choice = 0;
    if (value >= 0) {
      choice = map.of_row[value];
    } else if (map.parameter.values.size() > 1 && !table.absent_is_first) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": ", row.where, ": no value of `",
                                                     map.parameter.name, "`; expected one of ",
                                                     absl::StrJoin(map.parameter.values, ", ")));
    }
    if (choice < 0) return std::vector<int>();
    choices.push_back(choice);
    written.push_back(map.written[choice]);
  }
  if (space == nullptr) return choices;
  auto satisfies = space->Satisfies(written);
  if (!satisfies.ok())
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": ", row.where, ": ", satisfies.status().message()));
  return *satisfies ? choices : std::vector<int>();
}

// In ascending order, each configuration once: the last of its results.
void SortAndKeepLast(std::vector<RecordedConfiguration>* configurations, SpaceCounts* counts) {
  std::ranges::stable_sort(*configurations,
                           [](const auto& a, const auto& b) { return a.choices < b.choices; });
  std::vector<RecordedConfiguration> kept;
  for (RecordedConfiguration& configuration : *configurations) {
    if (!kept.empty() && kept.back().choices == configuration.choices) {
      kept.pop_back();
      ++counts->superseded;
    }
    kept.push_back(std::move(configuration));
  }
  *configurations = std::move(kept);
}

}  // namespace

int ResultTable::Name(const std::string& name) {
  const auto [found, is_new] = number_of_.emplace(name, static_cast<int>(names_.size()));
  if (is_new) {
    names_.push_back(name);
    values_.emplace_back();
    value_number_.emplace_back();
  }
  return found->second;
}

int ResultTable::Value(int name, const PythonValue& value) {
  const auto [found, is_new] =
      value_number_[name].emplace(EqualityKey(value), static_cast<int>(values_[name].size()));
  if (is_new) values_[name].push_back(value);
  return found->second;
}

void ResultTable::SetValue(const std::string& name, const PythonValue& value, Row* row) {
  const int number = Name(name);
  if (static_cast<int>(row->values.size()) <= number) row->values.resize(number + 1, -1);
  row->values[number] = Value(number, value);
}

absl::StatusOr<RecordedSpace> MakeRecordedSpace(const ResultTable& table, const ConstrainedSpace* space,
                                                const std::string& where, SpaceCounts* counts) {
  *counts = {};
  const std::vector<ParameterMap> maps = MapParameters(table, space);
  MYCC_RETURN_IF_ERROR(CheckNames(table, maps, where));
  RecordedSpace recorded;
  recorded.name = table.kernel;
  recorded.device = table.device;
  recorded.objective = table.objective;
  recorded.higher_is_better = table.higher_is_better;
  for (const ParameterMap& map : maps) recorded.parameters.push_back(map.parameter);
  for (const ResultTable::Row& row : table.rows()) {
    MYCC_ASSIGN_OR_RETURN(std::vector<int> choices, ChoicesOf(table, row, maps, space, where));
    if (choices.empty()) {
      ++counts->outside;
      continue;
    }
    recorded.configurations.push_back({std::move(choices), row.run_seconds, row.compile_seconds, row.failure,
                                       row.measuring_seconds, row.seconds});
  }
  SortAndKeepLast(&recorded.configurations, counts);
  counts->recorded = static_cast<int64_t>(recorded.configurations.size());
  for (const RecordedConfiguration& configuration : recorded.configurations)
    counts->failed += configuration.failure.empty() ? 0 : 1;
  if (counts->recorded == counts->failed) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": no configuration of the space ran; ", counts->failed, " failed, and ",
                     HowMany(counts->outside, "result"), " lay outside the space; expected one that ran"));
  }
  return recorded;
}

}  // namespace mycc
