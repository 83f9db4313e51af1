#include "mycc_tune/log_report.h"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/plural.h"
#include "command/table.h"
#include "command/times.h"
#include "db/message_json.h"
#include "db/record_check.h"
#include "proto/names.h"
#include "proto/precision.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

using nlohmann::ordered_json;

constexpr size_t kShortHash = 12;

std::string TimeOrDash(double seconds) { return seconds > 0 ? FormatSeconds(seconds) : "-"; }

// "+-0.8 %": half the confidence interval, relative to the time.
std::string FormatSpread(const v1::Timing& timing) {
  const double width = RelativeWidth(timing);
  if (std::isinf(width)) return "(one sample)";
  return width > 0 ? absl::StrFormat("+-%.1f %%%s", 50 * width, width > kWideInterval ? " (wide)" : "") : "";
}

std::string Remarks(const StoredRecord& stored) {
  std::vector<std::string> remarks;
  if (stored.override_by.has_value()) {
    remarks.push_back(stored.override_by->kind == OverrideKind::kPin ? "pinned" : "banned");
  }
  if (!stored.record.result().timing().final_round().empty()) remarks.push_back("final round");
  if (stored.superseded) remarks.push_back("superseded");
  const v1::MeasureResult& result = stored.record.result();
  if (result.status() == v1::MEASURE_STATUS_OK && !result.verification().passed())
    remarks.push_back("not verified");
  if (IsVerifiedOk(stored.record) && !IsServable(stored.record)) remarks.push_back("not proven");
  return absl::StrJoin(remarks, ", ");
}

std::string NameOf(const std::string& name, const std::string& hash) {
  return absl::StrCat(name.empty() ? "workload" : name, " ", hash.substr(0, kShortHash));
}

class Fields {
 public:
  void Add(const std::string& name, const std::string& value) {
    if (!value.empty()) rows_.emplace_back(name, value);
  }
  // The values stand below each other.
  void Write(std::ostream& out) const {
    size_t width = 0;
    for (const auto& [name, value] : rows_) width = std::max(width, name.size() + 2);
    for (const auto& [name, value] : rows_)
      out << name << std::string(width - name.size(), ' ') << Printable(value) << "\n";
  }

 private:
  std::vector<std::pair<std::string, std::string>> rows_;
};

void AddTiming(const v1::Timing& timing, Fields* fields) {
  if (timing.seconds() > 0) {
    const std::string spread = FormatSpread(timing);
    fields->Add("time", absl::StrCat(FormatSeconds(timing.seconds()), spread.empty() ? "" : " ", spread, ", ",
                                     ProtocolName(timing.protocol()), " caches, ",
                                     HowMany(timing.samples_seconds_size(), "sample"), ", timer ",
                                     timing.timer_version()));
  }
  if (timing.baseline_seconds() > 0) {
    fields->Add("baseline",
                absl::StrFormat("%s, relative to it %.4f", FormatSeconds(timing.baseline_seconds()),
                                timing.relative_to_baseline()));
  }
  if (!timing.final_round().empty()) {
    fields->Add("final round",
                absl::StrCat(timing.final_round(), ", timed in turn with its rivals; ranks by ",
                             FormatSeconds(timing.rank_seconds())));
  }
  fields->Add("spent", absl::StrFormat("build %s, run %s", FormatSeconds(timing.build_seconds()),
                                       FormatSeconds(timing.run_seconds())));
}

// "64 launches left the same bits, 32 of them under strain".
std::string Launches(const v1::Verification& check) {
  if (check.launches() == 0) return "";
  return absl::StrFormat("%s left the same bits, %d of them under strain",
                         HowMany(check.launches(), "launch", "launches"), check.strained_launches());
}

void AddVerification(const v1::Verification& check, Fields* fields) {
  fields->Add(
      "verification",
      absl::StrFormat("%s, %d elements of %d outputs, max error %g absolute, %g relative, seeds %s",
                      check.passed() ? "passed" : "failed", check.elements_checked(), check.outputs_checked(),
                      check.max_abs_error(), check.max_rel_error(), absl::StrJoin(check.seeds(), " ")));
  fields->Add("proof", Launches(check));
}

void AddCode(const v1::MeasureResult& result, Fields* fields) {
  const v1::CodeResources& code = result.resources();
  std::vector<std::string> parts;
  if (code.has_registers_per_thread())
    parts.push_back(absl::StrCat(code.registers_per_thread(), " registers"));
  if (code.has_spill_bytes()) parts.push_back(absl::StrCat(code.spill_bytes(), " B spilled"));
  if (code.has_shared_bytes()) parts.push_back(absl::StrCat(code.shared_bytes(), " B shared"));
  if (code.has_code_bytes()) parts.push_back(absl::StrCat(code.code_bytes(), " B of code"));
  fields->Add("code", absl::StrJoin(parts, ", "));
  fields->Add("code digest", result.code_digest());
  parts.clear();
  const v1::Toolchain& tools = result.toolchain();
  if (!tools.mycc().empty()) parts.push_back("mycc " + tools.mycc());
  if (!tools.llvm().empty()) parts.push_back("LLVM " + tools.llvm());
  if (!tools.nvrtc().empty()) parts.push_back("NVRTC " + tools.nvrtc());
  fields->Add("toolchain", absl::StrJoin(parts, ", "));
}

void AddDevice(const v1::DeviceInfo& device, Fields* fields) {
  std::vector<std::string> parts;
  for (const std::string& part :
       {device.device(), device.model(), device.driver(), device.host(), device.kernel()}) {
    if (!part.empty()) parts.push_back(part);
  }
  if (device.clock_mhz() > 0) parts.push_back(absl::StrFormat("%.0f MHz", device.clock_mhz()));
  if (device.memory_clock_mhz() > 0)
    parts.push_back(absl::StrFormat("memory %.0f MHz", device.memory_clock_mhz()));
  if (device.has_temperature_celsius())
    parts.push_back(absl::StrFormat("%.0f C", device.temperature_celsius()));
  if (device.power_limit_watts() > 0)
    parts.push_back(absl::StrFormat("limit %.0f W", device.power_limit_watts()));
  fields->Add("worker", device.worker());
  fields->Add("device", absl::StrJoin(parts, ", "));
}

void AddProvenance(const v1::Provenance& from, Fields* fields) {
  if (from.job().empty()) return;
  std::string text = absl::StrFormat("job %s, task %d, generation %d, candidate %d", from.job(), from.task(),
                                     from.generation(), from.index());
  if (!from.strategy().empty()) absl::StrAppend(&text, ", by ", from.strategy(), " with seed ", from.seed());
  if (from.has_predicted_score()) absl::StrAppend(&text, ", predicted score ", from.predicted_score());
  if (!from.model().empty()) absl::StrAppend(&text, ", model ", from.model().substr(0, kShortHash));
  fields->Add("provenance", text);
}

void AddOverride(const StoredRecord& stored, Fields* fields) {
  if (!stored.override_by.has_value()) return;
  const Override& word = *stored.override_by;
  fields->Add(word.kind == OverrideKind::kPin ? "pinned" : "banned",
              absl::StrCat(FormatUnixMicros(word.made_unix_micros), ", by record ", word.record_id, ": ",
                           word.reason));
}

void WriteBlock(const char* title, const std::string& text, std::ostream& out) {
  if (text.empty()) return;
  out << title << ":\n" << Printable(text) << (text.back() == '\n' ? "" : "\n");
}

}  // namespace

void WriteStatsText(const std::string& path, const LogStats& stats, std::ostream& out) {
  out << absl::StrFormat("%s: %s of %s on %s, %.1f MB, version %d\n", path, HowMany(stats.records, "record"),
                         HowMany(stats.workloads, "workload"), HowMany(stats.targets, "target"),
                         static_cast<double>(stats.file_bytes) / 1e6, stats.version);
  out << absl::StrFormat("%d pinned, %d banned; %s with %s, %s\n", stats.pins, stats.bans,
                         HowMany(stats.jobs, "job"), HowMany(stats.open_trials, "open trial"),
                         HowMany(stats.models, "model"));
  if (stats.foreign > 0)
    out << absl::StrFormat("%s; %d to be measured here\n", HowMany(stats.foreign, "foreign record"),
                           stats.foreign_waiting);
  if (stats.records == 0) return;
  out << "recorded " << FormatUnixMicros(stats.oldest_unix_micros) << " to "
      << FormatUnixMicros(stats.newest_unix_micros) << "\n\n";
  std::vector<std::vector<std::string>> rows = {{"status", "records", "share"}};
  for (const auto& [status, count] : stats.by_status) {
    const double share = static_cast<double>(count) / static_cast<double>(stats.records);
    rows.push_back({StatusName(static_cast<v1::MeasureStatus>(status)), absl::StrCat(count),
                    absl::StrFormat("%.1f %%", 100 * share)});
  }
  out << FormatTable(rows, {1, 2}) << "\n";
  rows = {{"workload", "records", "ranked", "best warm", "best cold", "best model", "target", ""}};
  for (const KeyStats& key : stats.keys) {
    std::vector<std::string> remarks;
    if (key.pinned) remarks.push_back("pinned");
    if (key.banned > 0) remarks.push_back(absl::StrCat(key.banned, " banned"));
    rows.push_back({NameOf(key.workload_name, key.key.workload_hash), absl::StrCat(key.records),
                    absl::StrCat(key.verified_ok), TimeOrDash(key.best_warm_seconds),
                    TimeOrDash(key.best_cold_seconds), TimeOrDash(key.best_model_seconds), key.key.target,
                    absl::StrJoin(remarks, ", ")});
  }
  out << FormatTable(rows, {1, 2, 3, 4, 5});
}

void WriteStatsJson(const std::string& path, const LogStats& stats, std::ostream& out) {
  ordered_json statuses = ordered_json::object();
  for (const auto& [status, count] : stats.by_status)
    statuses[StatusName(static_cast<v1::MeasureStatus>(status))] = count;
  ordered_json keys = ordered_json::array();
  for (const KeyStats& key : stats.keys) {
    const auto time = [](double seconds) {
      return seconds > 0 ? ordered_json(seconds) : ordered_json(nullptr);
    };
    keys.push_back(ordered_json{{"workload_name", key.workload_name},
                                {"workload_hash", key.key.workload_hash},
                                {"target", key.key.target},
                                {"records", key.records},
                                {"ranked", key.verified_ok},
                                {"best_warm_seconds", time(key.best_warm_seconds)},
                                {"best_cold_seconds", time(key.best_cold_seconds)},
                                {"best_model_seconds", time(key.best_model_seconds)},
                                {"pinned", key.pinned},
                                {"banned", key.banned}});
  }
  out << ordered_json{{"log", path},
                      {"version", stats.version},
                      {"file_bytes", stats.file_bytes},
                      {"records", stats.records},
                      {"workloads", stats.workloads},
                      {"targets", stats.targets},
                      {"pins", stats.pins},
                      {"bans", stats.bans},
                      {"jobs", stats.jobs},
                      {"open_trials", stats.open_trials},
                      {"models", stats.models},
                      {"foreign_records", stats.foreign},
                      {"foreign_waiting", stats.foreign_waiting},
                      {"oldest_unix_micros", stats.oldest_unix_micros},
                      {"newest_unix_micros", stats.newest_unix_micros},
                      {"statuses", statuses},
                      {"keys", keys}}
      << "\n";
}

void WriteRecordTable(absl::Span<const StoredRecord> records, std::ostream& out) {
  std::vector<std::vector<std::string>> rows = {
      {"id", "recorded (UTC)", "status", "time", "", "ranks by", "caches", "workload", "target", ""}};
  for (const StoredRecord& stored : records) {
    const v1::Record& record = stored.record;
    const v1::Timing& timing = record.result().timing();
    const bool timed = record.result().status() == v1::MEASURE_STATUS_OK;
    rows.push_back(
        {absl::StrCat(stored.id), FormatUnixMicros(record.recorded_unix_micros()),
         StatusName(record.result().status()), timed ? FormatSeconds(timing.seconds()) : "-",
         timed ? FormatSpread(timing) : "", timed ? FormatSeconds(RankSeconds(timing)) : "-",
         timing.protocol() == v1::TIMING_PROTOCOL_UNSPECIFIED ? "-" : ProtocolName(timing.protocol()),
         NameOf(record.workload_name(), record.workload_hash()), record.target(), Remarks(stored)});
  }
  out << FormatTable(rows, {0, 3, 5});
}

void WriteRecordText(const StoredRecord& stored, std::ostream& out) {
  const v1::Record& record = stored.record;
  const v1::MeasureResult& result = record.result();
  Fields fields;
  fields.Add("record", absl::StrCat(stored.id, ", trial ", record.trial(), ", attempt ", record.attempt()));
  const std::string remarks = Remarks(stored);
  fields.Add("status", StatusName(result.status()) + (remarks.empty() ? "" : " (" + remarks + ")"));
  fields.Add("workload", absl::StrCat(record.workload_name(), " ", record.workload_hash()));
  fields.Add("target", record.target());
  AddOverride(stored, &fields);
  AddTiming(result.timing(), &fields);
  if (result.has_verification()) AddVerification(result.verification(), &fields);
  AddCode(result, &fields);
  AddDevice(result.device(), &fields);
  AddProvenance(record.provenance(), &fields);
  fields.Add("recorded", FormatUnixMicros(record.recorded_unix_micros()));
  fields.Write(out);
  WriteBlock("error", result.error(), out);
  WriteBlock("to reproduce", result.reproduction(), out);
  WriteBlock("workload", record.workload(), out);
  WriteBlock("trace", record.trace(), out);
}

void WriteRecordJson(const StoredRecord& stored, std::ostream& out) {
  ordered_json json{{"id", stored.id}, {"superseded", stored.superseded}};
  if (stored.override_by.has_value()) {
    json[stored.override_by->kind == OverrideKind::kPin ? "pinned" : "banned"] = stored.override_by->reason;
  }
  json.update(MessageToJson(stored.record));
  out << json << "\n";
}

}  // namespace mycc
