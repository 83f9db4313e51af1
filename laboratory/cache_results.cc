#include "laboratory/cache_results.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "laboratory/json_value.h"
#include "laboratory/result_value.h"

namespace mycc {
namespace {

using nlohmann::json;

constexpr double kMillisecond = 1e-3;

absl::Status RefuseCache(const std::string& what) { return absl::InvalidArgumentError(what); }

// Kernel Tuner's own members beside the parameters. Metrics of its users are told by the header.
bool IsOwnMember(const std::string& name) {
  for (const char* own : {"time", "times", "compile_time", "verification_time", "benchmark_time",
                          "strategy_time", "framework_time", "timestamp", "GFLOP/s", "__error__"}) {
    if (name == own) return true;
  }
  return false;
}

// The names under which an entry has its value or why it failed: the objective, which tuners of several ones
// write as a list.
std::vector<std::string> ObjectivesOf(const ResultHeader& header) {
  std::vector<std::string> names;
  for (const char* member : {"objective", "objectives"}) {
    const auto given = header.members.find(member);
    if (given == header.members.end()) continue;
    for (const json& name : given->second.is_array() ? given->second : json::array({given->second})) {
      if (name.is_string()) names.push_back(name.get<std::string>());
    }
  }
  return names;
}

// The mark of a failure that an entry has instead of a value.
const std::string* FailureMark(const std::vector<std::string>& objectives, const json& entry) {
  for (const std::string& name : objectives) {
    const auto member = entry.find(name);
    if (member != entry.end() && member->is_string() && !member->get_ref<const std::string&>().empty())
      return &member->get_ref<const std::string&>();
  }
  return nullptr;
}

absl::Status ReadTimes(const ResultHeader& header, const json& entry, ResultTable::Row* row) {
  const std::vector<std::string> objectives = ObjectivesOf(header);
  if (const auto compile = entry.find("compile_time"); compile != entry.end() && IsRunTime(*compile))
    row->compile_seconds = compile->get<double>() * kMillisecond;
  const auto time = entry.find("time");
  const std::string* mark = FailureMark({"__error__", "time"}, entry);
  if (mark == nullptr) mark = FailureMark(objectives, entry);
  if (mark != nullptr || (time != entry.end() && !IsRunTime(*time))) {
    row->failure = FailureWord(mark == nullptr ? "" : *mark);
    return absl::OkStatus();
  }
  row->run_seconds = Repetitions(entry, "times");
  if (row->run_seconds.empty() && time != entry.end()) row->run_seconds = {time->get<double>()};
  for (double& seconds : row->run_seconds) seconds *= kMillisecond;
  for (const std::string& name : objectives) {
    const auto value = entry.find(name);
    if (name == "time" || row->value || value == entry.end()) continue;
    if (value->is_number()) row->value = value->get<double>();
    if (!value->is_number() && row->run_seconds.empty()) row->failure = FailureWord("");
  }
  if (!row->run_seconds.empty() || row->value || !row->failure.empty()) return absl::OkStatus();
  return RefuseCache(
      absl::StrCat(row->where, ": neither \"time\" nor \"times\"; expected milliseconds or why it failed"));
}

}  // namespace

absl::Status CacheReader::Entry(const ResultHeader& before, const std::string& key, const json& entry) {
  if (!entry.is_object())
    return RefuseCache(absl::StrCat("entry \"", key, "\" is ", entry.type_name(), "; expected an object"));
  ResultTable::Row row;
  row.where = absl::StrCat("entry \"", key, "\"");
  const auto params = before.members.find("tune_params");
  for (const auto& [name, value] : entry.items()) {
    const bool is_known = params != before.members.end() && params->second.is_object();
    if (is_known ? !params->second.contains(name) : IsOwnMember(name)) continue;
    const auto parameter = FromJson(value);
    if (parameter.ok()) entries_.SetValue(name, *parameter, &row);
  }
  MYCC_RETURN_IF_ERROR(ReadTimes(before, entry, &row));
  keys_.push_back(key);
  entries_.Add(std::move(row));
  return absl::OkStatus();
}

absl::StatusOr<ResultTable> CacheReader::Finish(const ResultHeader& header) const {
  const auto params = header.members.find("tune_params");
  if (params == header.members.end() || !params->second.is_object() || params->second.empty())
    return RefuseCache("no \"tune_params\"; expected an object of the parameters and their values");
  std::vector<std::string> names;
  if (const auto order = header.members.find("tune_params_keys");
      order != header.members.end() && order->second.is_array()) {
    for (const json& name : order->second) {
      if (name.is_string()) names.push_back(name.get<std::string>());
    }
  }
  if (names.empty()) {
    for (const auto& member : params->second.items()) names.push_back(member.key());
  }
  ResultTable table;
  for (const std::string& name : names) {
    const int number = table.Name(name);
    const auto values = params->second.find(name);
    if (values == params->second.end()) continue;
    for (const json& value : values->is_array() ? *values : json::array({*values})) {
      const auto parameter = FromJson(value);
      if (!parameter.ok())
        return RefuseCache(absl::StrCat("\"tune_params\": \"", name, "\": ", parameter.status().message()));
      table.Value(number, *parameter);
    }
  }
  std::vector<size_t> places;  // of the names among those of the entries
  for (const std::string& name : names) {
    const auto known = std::ranges::find(entries_.names(), name);
    places.push_back(static_cast<size_t>(known - entries_.names().begin()));
  }
  for (size_t r = 0; r < entries_.rows().size(); ++r) {
    const ResultTable::Row& entry = entries_.rows()[r];
    ResultTable::Row row = entry;
    row.values.clear();
    const std::vector<std::string> words = absl::StrSplit(keys_[r], ',');
    for (size_t n = 0; n < names.size(); ++n) {
      const bool has_value = places[n] < entry.values.size() && entry.values[places[n]] >= 0;
      if (has_value) {
        const int name = static_cast<int>(places[n]);
        table.SetValue(names[n], entries_.values(name)[static_cast<size_t>(entry.values[places[n]])], &row);
      } else if (words.size() == names.size()) {
        table.SetValue(names[n], FromKeyWord(words[n]), &row);
      }
    }
    table.Add(std::move(row));
  }
  for (const std::string& objective : ObjectivesOf(header)) {
    if (table.objective.empty()) table.objective = objective;
  }
  return table;
}

}  // namespace mycc
