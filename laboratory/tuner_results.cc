#include "laboratory/tuner_results.h"

#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "laboratory/cache_results.h"
#include "laboratory/json_value.h"
#include "laboratory/result_stream.h"
#include "laboratory/result_value.h"
#include "laboratory/trace_decisions.h"

namespace mycc {
namespace {

using nlohmann::json;

constexpr double kMillisecond = 1e-3;

absl::Status RefuseEntry(const std::string& what) { return absl::InvalidArgumentError(what); }

// A measurement of an entry by its name; null where there is none.
const json* Measurement(const json& entry, const std::string& name) {
  const auto measurements = entry.find("measurements");
  if (measurements == entry.end() || !measurements->is_array()) return nullptr;
  for (const json& measurement : *measurements) {
    if (measurement.is_object() && measurement.value("name", json()) == name && measurement.contains("value"))
      return &measurement;
  }
  return nullptr;
}

// The unit of a measured time, where it says one.
std::optional<double> UnitOf(const json& measurement) {
  const json unit = measurement.value("unit", json());
  return unit.is_string() ? SecondsOfUnit(unit.get<std::string>()) : std::nullopt;
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
        table_.SetValue(name, *parameter, &row);
      }
    }
    MYCC_RETURN_IF_ERROR(Times(entry, &row));
    table_.Add(std::move(row));
    return absl::OkStatus();
  }

  // Scales the times, when the whole file is known.
  absl::Status Finish(const ResultHeader& header);

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
      if (compile != times->end() && IsRunTime(*compile)) row->compile_seconds = compile->get<double>();
    }
    const auto invalidity = entry.find("invalidity");
    if (invalidity == entry.end() || !invalidity->is_string()) {
      return RefuseEntry(absl::StrCat(row->where,
                                      ": no \"invalidity\"; expected \"correct\", \"compile\", \"runtime\", "
                                      "\"timeout\", \"correctness\" or \"constraints\""));
    }
    if (*invalidity != "correct") {
      row->failure = FailureWord(invalidity->get<std::string>());
      return absl::OkStatus();
    }
    row->run_seconds = Repetitions(*times, "runtimes");
    const bool had_runs = times->contains("runtimes") && !times->at("runtimes").empty();
    const json* time = Measurement(entry, "time");
    TakeMeasuredTime(time, row);
    TakeObjective(entry, row);
    if (!row->run_seconds.empty() || row->value) return absl::OkStatus();
    if (!had_runs && time == nullptr)
      return RefuseEntry(
          absl::StrCat(row->where, ": is \"correct\" and has no time; expected \"runtimes\" in \"times\""));
    // Times that are NaN, or a failure's name: it did not run.
    const bool is_word = time != nullptr && time->at("value").is_string();
    row->failure = FailureWord(is_word ? time->at("value").get<std::string>() : "");
    return absl::OkStatus();
  }

  // The measured time stands for repetitions where they are missing. Otherwise it is their mean, and may tell
  // the unit of all times of a file that does not say it.
  void TakeMeasuredTime(const json* time, ResultTable::Row* row) {
    if (time == nullptr || !IsRunTime(time->at("value"))) return;
    const double value = time->at("value").get<double>();
    const std::optional<double> unit = UnitOf(*time);
    if (row->run_seconds.empty()) {
      row->run_seconds = {value};
      if (unit) own_unit_[table_.rows().size()] = *unit;
      return;
    }
    double mean = 0;
    for (const double run : row->run_seconds) mean += run / static_cast<double>(row->run_seconds.size());
    if (unit && !told_unit_ && value < 2 * mean && mean < 2 * value) told_unit_ = unit;
  }

  void TakeObjective(const json& entry, ResultTable::Row* row) {
    const json objectives = entry.value("objectives", json());
    if (!objectives.is_array() || objectives.empty() || !objectives[0].is_string()) return;
    const std::string name = objectives[0].get<std::string>();
    const json* measured = name == "time" ? nullptr : Measurement(entry, name);
    if (measured == nullptr || !measured->at("value").is_number()) return;
    row->value = measured->at("value").get<double>();
    if (table_.objective.empty()) table_.objective = name;
  }

  ResultTable& table_;
  std::string task_;
  std::optional<double> told_unit_;               // of the file's times, by a measurement
  absl::flat_hash_map<size_t, double> own_unit_;  // of a row's run time, where it is another
};

// The seconds of a T4 file's unit of time; nullopt where it says none.
absl::StatusOr<std::optional<double>> TimeUnit(const ResultHeader& header) {
  const auto metadata = header.members.find("metadata");
  if (metadata == header.members.end() || !metadata->second.is_object() ||
      !metadata->second.contains("timeunit"))
    return std::optional<double>();
  const json word = metadata->second["timeunit"];
  const std::string name = word.is_string() ? word.get<std::string>() : word.dump();
  const std::optional<double> unit = SecondsOfUnit(name);
  if (!unit) {
    return RefuseEntry(absl::StrCat("\"timeunit\" is ", name,
                                    "; expected seconds, milliseconds, microseconds or nanoseconds"));
  }
  return unit;
}

absl::Status T4Reader::Finish(const ResultHeader& header) {
  MYCC_ASSIGN_OR_RETURN(const std::optional<double> said, TimeUnit(header));
  const double unit = said ? *said : told_unit_.value_or(kMillisecond);
  for (size_t r = 0; r < table_.rows().size(); ++r) {
    ResultTable::Row& row = table_.rows()[r];
    const auto own = own_unit_.find(r);
    for (double& seconds : row.run_seconds) seconds *= own == own_unit_.end() ? unit : own->second;
    row.compile_seconds *= unit;
  }
  return absl::OkStatus();
}

// Decides what counts, the times or the values of another objective, and puts it into the rows.
absl::Status ChooseObjective(ResultTable* table) {
  bool all_timed = true;
  for (const ResultTable::Row& row : table->rows())
    all_timed &= !row.failure.empty() || !row.run_seconds.empty();
  const bool by_time = KindOfObjective(table->objective) == ObjectiveKind::kTime && all_timed;
  if (table->objective.empty() || table->objective == "time" || by_time) {
    table->objective.clear();
    return absl::OkStatus();
  }
  table->higher_is_better = IsHigherBetter(table->objective);
  for (ResultTable::Row& row : table->rows()) {
    if (!row.failure.empty()) continue;
    if (!row.value) {
      return RefuseEntry(
          absl::StrCat(row.where, ": no \"", table->objective, "\", the objective; expected a number"));
    }
    row.measuring_seconds = 0;
    for (const double seconds : row.run_seconds) *row.measuring_seconds += seconds;
    row.run_seconds = {table->higher_is_better ? 1 / *row.value : *row.value};
    if (std::isfinite(row.run_seconds[0]) && row.run_seconds[0] > 0) continue;
    row.run_seconds.clear();
    row.measuring_seconds.reset();
    row.failure = "objective";
  }
  return absl::OkStatus();
}

std::string TextMember(const ResultHeader& header, const char* name) {
  const auto member = header.members.find(name);
  return member != header.members.end() && member->second.is_string() ? member->second.get<std::string>()
                                                                      : "";
}

absl::StatusOr<ResultTable> ReadEither(std::string text) {
  ResultTable table;
  CacheReader cache;
  T4Reader results(&table);
  const auto visit = [&](const ResultHeader& before, const std::string& key, const json& entry) {
    return before.has_results ? results.Entry(key, entry) : cache.Entry(before, key, entry);
  };
  MYCC_ASSIGN_OR_RETURN(const ResultHeader header, ReadResults(std::move(text), visit));
  if (header.has_cache == header.has_results)
    return RefuseEntry("expected \"cache\", Kernel Tuner's, or \"results\", T4's, and not both");
  if (header.has_cache) {
    MYCC_ASSIGN_OR_RETURN(table, cache.Finish(header));
  } else {
    MYCC_RETURN_IF_ERROR(results.Finish(header));
  }
  MYCC_RETURN_IF_ERROR(ChooseObjective(&table));
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
