#include "laboratory/tuner_results.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "laboratory/json_value.h"
#include "laboratory/result_stream.h"
#include "laboratory/trace_decisions.h"

namespace mycc {
namespace {

using nlohmann::json;

constexpr double kMillisecond = 1e-3;
constexpr double kPenalty =
    1e20;  // the time in milliseconds that old versions of Kernel Tuner wrote for a failure

absl::Status RefuseEntry(const std::string& what) { return absl::InvalidArgumentError(what); }

bool IsTime(const json& value) {
  return value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() > 0 &&
         value.get<double>() < kPenalty;
}

// Kernel Tuner's names of failures, as T4's words.
std::string FailureWord(const std::string& name) {
  if (name == "CompilationFailedConfig") return "compile";
  if (name == "RuntimeFailedConfig") return "runtime";
  if (name == "InvalidConfig") return "constraints";
  return name.empty() ? "runtime" : name;
}

// The repetitions in milliseconds; empty where a member is absent or holds something else than times.
std::vector<double> Repetitions(const json& entry, const char* member) {
  std::vector<double> times;
  const auto found = entry.find(member);
  if (found == entry.end() || !found->is_array()) return times;
  for (const json& time : *found) {
    if (!IsTime(time)) return {};
    times.push_back(time.get<double>());
  }
  return times;
}

void ScaleTimes(double unit, ResultTable::Row* row) {
  for (double& seconds : row->run_seconds) seconds *= unit;
  row->compile_seconds *= unit;
}

void SetValue(ResultTable* table, const std::string& name, const PythonValue& value, ResultTable::Row* row) {
  const int number = table->Name(name);
  if (static_cast<int>(row->values.size()) <= number) row->values.resize(number + 1, -1);
  row->values[number] = table->Value(number, value);
}

// Entries of a cache come after its header in every file that Kernel Tuner has written, but JSON does not say
// so: their members stay as they are until the header is known.
class CacheReader {
 public:
  explicit CacheReader(ResultTable* table) : table_(*table) {}

  absl::Status Entry(const ResultHeader& before, const std::string& key, const json& entry) {
    if (!entry.is_object())
      return RefuseEntry(absl::StrCat("entry \"", key, "\" is ", entry.type_name(), "; expected an object"));
    ResultTable::Row row;
    row.where = absl::StrCat("entry \"", key, "\"");
    const auto params = before.members.find("tune_params");
    for (const auto& [name, value] : entry.items()) {
      const bool is_known = params != before.members.end() && params->second.is_object();
      if (is_known ? !params->second.contains(name) : IsOwnMember(name)) continue;
      const auto parameter = FromJson(value);
      if (parameter.ok()) SetValue(&table_, name, *parameter, &row);
    }
    MYCC_RETURN_IF_ERROR(Times(entry, &row));
    keys_.push_back(key);
    table_.Add(std::move(row));
    return absl::OkStatus();
  }

  const std::vector<std::string>& keys() const { return keys_; }

 private:
  // Kernel Tuner's own members beside the parameters. Metrics of its users are told by the header.
  static bool IsOwnMember(const std::string& name) {
    for (const char* own : {"time", "times", "compile_time", "verification_time", "benchmark_time",
                            "strategy_time", "framework_time", "timestamp", "GFLOP/s", "__error__"}) {
      if (name == own) return true;
    }
    return false;
  }

  absl::Status Times(const json& entry, ResultTable::Row* row) {
    if (const auto compile = entry.find("compile_time"); compile != entry.end() && IsTime(*compile))
      row->compile_seconds = compile->get<double>();
    if (const auto error = entry.find("__error__"); error != entry.end() && error->is_string()) {
      row->failure = FailureWord(error->get<std::string>());
      return absl::OkStatus();
    }
    const auto time = entry.find("time");
    row->run_seconds = Repetitions(entry, "times");
    if (time == entry.end()) {
      if (row->run_seconds.empty())
        return RefuseEntry(absl::StrCat(
            row->where, ": neither \"time\" nor \"times\"; expected milliseconds or why it failed"));
      return absl::OkStatus();
    }
    if (!IsTime(*time)) {
      row->run_seconds.clear();
      row->failure = FailureWord(time->is_string() ? time->get<std::string>() : "");
    } else if (row->run_seconds.empty()) {
      row->run_seconds = {time->get<double>()};
    }
    return absl::OkStatus();
  }

  ResultTable& table_;
  std::vector<std::string> keys_;
};

// The parameters that the header names, in its order, with its values before those that only entries have.
absl::StatusOr<ResultTable> WithHeaderOf(const ResultHeader& header, const ResultTable& entries,
                                         const std::vector<std::string>& keys) {
  const auto params = header.members.find("tune_params");
  if (params == header.members.end() || !params->second.is_object() || params->second.empty())
    return RefuseEntry("no \"tune_params\"; expected an object of the parameters and their values");
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
      MYCC_ASSIGN_OR_RETURN(const PythonValue parameter, FromJson(value));
      table.Value(number, parameter);
    }
  }
  for (size_t r = 0; r < entries.rows().size(); ++r) {
    const ResultTable::Row& entry = entries.rows()[r];
    ResultTable::Row row{{}, entry.run_seconds, entry.compile_seconds, entry.failure, entry.where};
    const std::vector<std::string> words = absl::StrSplit(keys[r], ',');
    for (size_t n = 0; n < names.size(); ++n) {
      const auto known = std::find(entries.names().begin(), entries.names().end(), names[n]);
      const auto number = static_cast<size_t>(known - entries.names().begin());
      const bool has_value = number < entry.values.size() && entry.values[number] >= 0;
      if (has_value) {
        SetValue(&table, names[n], entries.values(static_cast<int>(number))[entry.values[number]], &row);
      } else if (words.size() == names.size()) {
        SetValue(&table, names[n], FromKeyWord(words[n]), &row);
      }
    }
    ScaleTimes(kMillisecond, &row);
    table.Add(std::move(row));
  }
  return table;
}

class T4Reader {
 public:
  explicit T4Reader(ResultTable* table) : table_(*table) {}

  absl::Status Entry(const std::string& number, const json& entry) {
    ResultTable::Row row;
    row.where = absl::StrCat("result ", number);
    const auto configuration = entry.is_object() ? entry.find("configuration") : entry.end();
    if (configuration == entry.end() || !configuration->is_object())
      return RefuseEntry(absl::StrCat(row.where, ": no \"configuration\"; expected an object of parameters"));
    if (configuration->contains("trace") && configuration->contains("workload")) {
      MYCC_ASSIGN_OR_RETURN(const bool has_sketch, Trace(*configuration, &row));
      if (!has_sketch) return absl::OkStatus();
    } else {
      for (const auto& [name, value] : configuration->items()) {
        const auto parameter = FromJson(value);
        if (!parameter.ok())
          return RefuseEntry(absl::StrCat(row.where, ": \"", name, "\": ", parameter.status().message()));
        SetValue(&table_, name, *parameter, &row);
      }
    }
    MYCC_RETURN_IF_ERROR(Times(entry, &row));
    table_.Add(std::move(row));
    return absl::OkStatus();
  }

 private:
  // A result of this project: the decisions of its trace are the parameters. False: it has none.
  absl::StatusOr<bool> Trace(const json& configuration, ResultTable::Row* row) {
    std::string task;
    for (const char* member : {"workload", "target", "trace"}) {
      const auto text = configuration.find(member);
      if (text == configuration.end() || !text->is_string())
        return RefuseEntry(
            absl::StrCat(row->where, ": no \"", member, "\" in \"configuration\"; expected a text"));
      if (std::string_view(member) != "trace") task += text->get<std::string>() + "\n";
    }
    if (!task_.empty() && task != task_) {
      return RefuseEntry(absl::StrCat(row->where,
                                      ": another workload or target than before; expected those of one task "
                                      "(export with --workload and --target)"));
    }
    task_ = task;
    return AddTraceDecisions(configuration["trace"].get<std::string>(), row->where, &table_, row);
  }

  absl::Status Times(const json& entry, ResultTable::Row* row) {
    const auto times = entry.find("times");
    if (times == entry.end() || !times->is_object())
      return RefuseEntry(absl::StrCat(row->where, ": no \"times\"; expected an object"));
    for (const char* member : {"compilation_time", "compilation"}) {
      const auto compile = times->find(member);
      if (compile != times->end() && IsTime(*compile)) row->compile_seconds = compile->get<double>();
    }
    const auto invalidity = entry.find("invalidity");
    if (invalidity == entry.end() || !invalidity->is_string()) {
      return RefuseEntry(absl::StrCat(row->where,
                                      ": no \"invalidity\"; expected \"correct\", \"compile\", \"runtime\", "
                                      "\"timeout\", \"correctness\" or \"constraints\""));
    }
    if (*invalidity != "correct") {
      row->failure = invalidity->get<std::string>();
      return absl::OkStatus();
    }
    row->run_seconds = Repetitions(*times, "runtimes");
    if (row->run_seconds.empty()) row->run_seconds = MeasuredTime(entry);
    if (row->run_seconds.empty())
      return RefuseEntry(
          absl::StrCat(row->where, ": is \"correct\" and has no time; expected \"runtimes\" in \"times\""));
    return absl::OkStatus();
  }

  static std::vector<double> MeasuredTime(const json& entry) {
    const auto measurements = entry.find("measurements");
    if (measurements == entry.end() || !measurements->is_array()) return {};
    for (const json& measurement : *measurements) {
      if (measurement.is_object() && measurement.value("name", json()) == "time" &&
          IsTime(measurement.value("value", json())))
        return {measurement["value"].get<double>()};
    }
    return {};
  }

  ResultTable& table_;
  std::string task_;
};

// The seconds of a T4 file's unit of time.
absl::StatusOr<double> TimeUnit(const ResultHeader& header) {
  const auto metadata = header.members.find("metadata");
  if (metadata == header.members.end() || !metadata->second.is_object()) return kMillisecond;
  const json word = metadata->second.value("timeunit", json("milliseconds"));
  const std::string unit = word.is_string() ? absl::AsciiStrToLower(word.get<std::string>()) : word.dump();
  // The first spelling is Kernel Tuner's.
  if (unit == "miliseconds" || unit == "milliseconds" || unit == "ms") return kMillisecond;
  if (unit == "seconds" || unit == "s") return 1.0;
  if (unit == "microseconds" || unit == "us") return 1e-6;
  if (unit == "nanoseconds" || unit == "ns") return 1e-9;
  return RefuseEntry(absl::StrCat("\"timeunit\" is ", unit,
                                  "; expected seconds, milliseconds, microseconds or nanoseconds"));
}

std::string TextMember(const ResultHeader& header, const char* name) {
  const auto member = header.members.find(name);
  return member != header.members.end() && member->second.is_string() ? member->second.get<std::string>()
                                                                      : "";
}

absl::StatusOr<ResultTable> ReadEither(std::string text) {
  ResultTable table;
  CacheReader cache(&table);
  T4Reader results(&table);
  const auto visit = [&](const ResultHeader& before, const std::string& key, const json& entry) {
    return before.has_results ? results.Entry(key, entry) : cache.Entry(before, key, entry);
  };
  MYCC_ASSIGN_OR_RETURN(const ResultHeader header, ReadResults(std::move(text), visit));
  if (header.has_cache == header.has_results)
    return RefuseEntry("expected \"cache\", Kernel Tuner's, or \"results\", T4's, and not both");
  if (header.has_cache) {
    MYCC_ASSIGN_OR_RETURN(table, WithHeaderOf(header, table, cache.keys()));
  } else {
    MYCC_ASSIGN_OR_RETURN(const double unit, TimeUnit(header));
    for (ResultTable::Row& row : table.rows()) ScaleTimes(unit, &row);
  }
  table.kernel = TextMember(header, "kernel_name");
  table.device = TextMember(header, "device_name");
  return table;
}

}  // namespace

absl::StatusOr<ResultTable> ReadTunerResults(std::string text, const std::string& where) {
  auto table = ReadEither(std::move(text));
  if (!table.ok()) return absl::InvalidArgumentError(absl::StrCat(where, ": ", table.status().message()));
  return table;
}

}  // namespace mycc
