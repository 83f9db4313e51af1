#include "web/api_json.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/version.h"
#include "codegen/schedule/trace.h"
#include "db/message_json.h"
#include "proto/names.h"

namespace mycc {
namespace {

int64_t CountOfState(const LogFacts& log, JobState state) {
  const auto found = log.jobs.find(state);
  return found == log.jobs.end() ? 0 : found->second;
}

// Errors that differ in addresses and numbers are of one kind.
std::string KindOf(const std::string& error) {
  std::string kind;
  for (const char c : error.substr(0, error.find('\n'))) {
    if (!std::isdigit(static_cast<unsigned char>(c))) {
      kind += c;
    } else if (kind.empty() || kind.back() != '#') {
      kind += '#';
    }
  }
  return kind;
}

Json TaskJson(const TaskConvergence& task) {
  Json points = Json::array();
  for (const BestPoint& point : task.points)
    points.push_back({point.trial, point.recorded_unix_micros, point.seconds});
  return {
      {"trials", task.trials}, {"last_unix_micros", task.last_unix_micros}, {"points", std::move(points)}};
}

Json FailureJson(const StoredRecord& stored) {
  const v1::Record& record = stored.record;
  const v1::MeasureResult& result = record.result();
  return {{"id", stored.id},
          {"trial", record.trial()},
          {"job", record.provenance().job()},
          {"workload_name", record.workload_name()},
          {"target", record.target()},
          {"worker", result.device().worker()},
          {"device", result.device().device()},
          {"error", result.error()},
          {"reproduction", result.reproduction()},
          {"recorded_unix_micros", record.recorded_unix_micros()}};
}

Json BestRecordJson(const StoredRecord& stored) {
  const v1::Record& record = stored.record;
  const v1::Timing& timing = record.result().timing();
  const absl::StatusOr<Trace> trace = ParseTrace(record.trace());
  return {{"id", stored.id},
          {"trial", record.trial()},
          {"protocol", ProtocolName(timing.protocol())},
          {"seconds", timing.seconds()},
          {"ci_low_seconds", timing.ci_low_seconds()},
          {"ci_high_seconds", timing.ci_high_seconds()},
          {"pinned", stored.override_by.has_value() && stored.override_by->kind == OverrideKind::kPin},
          {"sketch", trace.ok() ? PrintSketch(*trace) : ""},
          {"worker", record.result().device().worker()},
          {"device_model", record.result().device().model()},
          {"recorded_unix_micros", record.recorded_unix_micros()}};
}

}  // namespace

std::string DumpJson(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json StatusJson(const Overview& overview, const LogFacts& log, const ServerFacts& server) {
  std::map<std::string, int> states = {{"idle", 0}, {"busy", 0}, {"draining", 0}};
  for (const v1::DeviceStatus& device : overview.devices) ++states[device.state()];
  Json trials = Json::object();
  for (const auto& [status, count] : overview.counters.trials) trials[StatusName(status)] = count;
  return {{"version", ProgramVersion()},
          {"started_unix_micros", server.started_unix_micros},
          {"now_unix_micros", server.now_unix_micros},
          {"log",
           {{"name", server.log},
            {"bytes", log.file_bytes},
            {"records", log.newest_record},
            {"trouble", overview.trouble}}},
          {"jobs",
           {{"running", overview.running_jobs},
            {"waiting", overview.waiting_jobs},
            {"done", CountOfState(log, JobState::kDone)},
            {"cancelled", CountOfState(log, JobState::kCancelled)},
            {"failed", CountOfState(log, JobState::kFailed)}}},
          {"trials", {{"waiting", overview.waiting_trials}, {"leased", overview.leased_trials}}},
          {"results", std::move(trials)},
          {"refused", overview.counters.refused},
          {"search_crashes", overview.counters.search_crashes},
          {"devices", states}};
}

Json JobsJson(const v1::ListJobsResponse& jobs) {
  Json rows = Json::array();
  for (const v1::JobProgress& job : jobs.jobs()) rows.push_back(MessageToJson(job));
  return {{"jobs", std::move(rows)}};
}

Json JobJson(const v1::JobProgress& job, const std::vector<TaskConvergence>& tasks) {
  Json convergence = Json::array();
  for (const TaskConvergence& task : tasks) convergence.push_back(TaskJson(task));
  return {{"job", MessageToJson(job)}, {"convergence", std::move(convergence)}};
}

Json CandidatesJson(const std::vector<CandidateRow>& rows, const std::vector<int64_t>& task_keys) {
  std::unordered_map<int64_t, size_t> task_of_key;
  for (size_t task = 0; task < task_keys.size(); ++task) task_of_key[task_keys[task]] = task;
  Json candidates = Json::array();
  for (const CandidateRow& row : rows) {
    Json candidate = {{"id", row.id}, {"trial", row.trial}};
    if (const auto task = task_of_key.find(row.key); task != task_of_key.end())
      candidate["task"] = task->second;
    // The names of repeated measurements go on behind the trial's own.
    const std::string plain = row.trial.substr(0, row.trial.find_first_of("@#"));
    if (const absl::StatusOr<TrialId> id = ParseTrialName(plain); id.ok()) {
      candidate["generation"] = id->generation;
      candidate["index"] = id->index;
    }
    candidate["status"] = StatusName(row.status);
    if (row.seconds > 0) candidate["seconds"] = row.seconds;
    if (row.is_final) candidate["final"] = true;
    candidate["recorded_unix_micros"] = row.recorded_unix_micros;
    candidate["worker"] = row.worker;
    if (const absl::StatusOr<Trace> trace = ParseTrace(row.head); trace.ok() && !trace->sketch.empty()) {
      candidate["sketch"] = trace->sketch;
      Json decisions = Json::object();
      for (const auto& [name, choice] : trace->decisions) decisions[name] = choice;
      candidate["decisions"] = std::move(decisions);
    }
    candidates.push_back(std::move(candidate));
  }
  return {{"candidates", std::move(candidates)}};
}

Json DevicesJson(const Overview& overview, const DeviceHistory& history) {
  Json devices = Json::array();
  for (const v1::DeviceStatus& status : overview.devices) {
    Json device = MessageToJson(status);
    Json points = Json::array();
    const auto series = history.series().find({status.worker(), status.device()});
    if (series != history.series().end()) {
      for (const DevicePoint& point : series->second.points())
        points.push_back(
            {point.unix_micros, point.baseline_ratio, point.temperature_celsius, point.clock_mhz});
    }
    device["history"] = std::move(points);
    devices.push_back(std::move(device));
  }
  return {{"devices", std::move(devices)}};
}

Json QueueJson(const Overview& overview) {
  Json lines = Json::array(), leases = Json::array();
  for (const QueueLine& line : overview.lines)
    lines.push_back(
        {{"job", line.job}, {"target", line.target}, {"waiting", line.waiting}, {"apart", line.apart}});
  for (const QueueLease& lease : overview.leases) {
    leases.push_back({{"trial", lease.trial},
                      {"job", lease.job},
                      {"worker", lease.holder},
                      {"device", lease.device},
                      {"state", lease.state},
                      {"attempt", lease.attempt},
                      {"expires_in_seconds", lease.expires_in_seconds}});
  }
  return {{"waiting", overview.waiting_trials},
          {"leased", overview.leased_trials},
          {"lines", std::move(lines)},
          {"leases", std::move(leases)}};
}

Json FailuresJson(const std::vector<StoredRecord>& newest_first) {
  struct Kind {
    Json newest;
    int64_t count = 0;
  };
  std::map<std::pair<int, std::string>, Kind> kinds;
  for (const StoredRecord& stored : newest_first) {
    const v1::MeasureResult& result = stored.record.result();
    Kind& kind = kinds[{result.status(), KindOf(result.error())}];
    if (kind.count++ == 0) kind.newest = FailureJson(stored);
  }
  std::vector<std::pair<const std::pair<int, std::string>*, const Kind*>> sorted;
  for (const auto& [name, kind] : kinds) sorted.emplace_back(&name, &kind);
  std::ranges::stable_sort(sorted,
                           [](const auto& a, const auto& b) { return a.second->count > b.second->count; });
  Json rows = Json::array();
  for (const auto& [name, kind] : sorted) {
    rows.push_back({{"status", StatusName(static_cast<v1::MeasureStatus>(name->first))},
                    {"kind", name->second},
                    {"count", kind->count},
                    {"newest", kind->newest}});
  }
  return {{"failures", newest_first.size()}, {"kinds", std::move(rows)}};
}

Json RecordJson(const StoredRecord& stored) {
  return {{"id", stored.id}, {"record", MessageToJson(stored.record)}};
}

Json BestJson(const std::vector<KeyBest>& keys, int64_t limit) {
  Json rows = Json::array();
  for (const KeyBest& key : keys) {
    Json best = Json::array();
    for (const StoredRecord& record : key.best) best.push_back(BestRecordJson(record));
    rows.push_back({{"workload_name", key.key.workload_name},
                    {"workload_hash", key.key.key.workload_hash},
                    {"target", key.key.key.target},
                    {"best", std::move(best)}});
  }
  Json answer = {{"keys", std::move(rows)}};
  if (static_cast<int64_t>(keys.size()) == limit) answer["before"] = keys.back().key.id;
  return answer;
}

}  // namespace mycc
