#include "mycc_tune/job_report.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/check.h"
#include "base/output_file.h"
#include "base/plural.h"
#include "base/status.h"
#include "base/version.h"
#include "db/log_views.h"
#include "db/message_json.h"
#include "db/record_check.h"
#include "mycc_tune/decision_worth.h"
#include "mycc_tune/job_generations.h"
#include "mycc_tune/reported_job.h"
#include "proto/names.h"
#include "server/job_listing.h"
#include "web/api_json.h"
#include "web/assets.h"
#include "web/gzip.h"

namespace mycc {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kRowsARead = 5000;

// The facts that the job's whole records have beyond the rows of its candidates.
struct JobRecords {
  std::vector<StoredRecord> failures;                                     // the newest first
  std::vector<StoredRecord> final_records;                                // timed in a final round
  std::map<std::pair<std::string, std::string>, v1::DeviceInfo> devices;  // by worker and device
};

absl::StatusOr<JobRecords> ReadJobRecords(const TuningLog& log, const std::string& job) {
  JobRecords records;
  RecordFilter filter;
  filter.job = job;
  MYCC_RETURN_IF_ERROR(log.ForEach(filter, [&records](const StoredRecord& stored) {
    const v1::MeasureResult& result = stored.record.result();
    const v1::DeviceInfo& device = result.device();
    records.devices.emplace(std::make_pair(device.worker(), device.device()), device);
    if (result.status() != v1::MEASURE_STATUS_OK) {
      records.failures.push_back(stored);
    } else if (result.timing().rank_seconds() > 0) {
      records.final_records.push_back(stored);
    }
    return absl::OkStatus();
  }));
  std::ranges::reverse(records.failures);
  return records;
}

absl::StatusOr<std::vector<CandidateRow>> ReadRows(const TuningLog& log, const std::string& job) {
  std::vector<CandidateRow> rows;
  while (true) {
    MYCC_ASSIGN_OR_RETURN(
        std::vector<CandidateRow> page,
        ReadCandidates(log, {.job = job, .after = rows.empty() ? 0 : rows.back().id, .limit = kRowsARead}));
    rows.insert(rows.end(), page.begin(), page.end());
    if (static_cast<int64_t>(page.size()) < kRowsARead) return rows;
  }
}

std::vector<DecidedCandidate> DecidedOf(const std::vector<CandidateRow>& rows,
                                        const std::map<int64_t, uint32_t>& task_of_key) {
  std::vector<DecidedCandidate> decided;
  for (const CandidateRow& row : rows) {
    const auto task = task_of_key.find(row.key);
    const absl::StatusOr<Trace> trace = ParseTrace(row.head);
    if (row.is_final || task == task_of_key.end() || !trace.ok()) continue;
    DecidedCandidate& candidate = decided.emplace_back();
    candidate.task = task->second;
    candidate.sketch = trace->sketch;
    for (const auto& [name, value] : trace->decisions) candidate.decisions[name] = value;
    if (row.status == v1::MEASURE_STATUS_OK && row.verified) candidate.seconds = row.seconds;
  }
  return decided;
}

ordered_json SecondsJson(double seconds) { return seconds > 0 ? ordered_json(seconds) : nullptr; }

ordered_json DecisionsJson(const std::vector<DecisionWorth>& worths) {
  ordered_json rows = ordered_json::array();
  for (const DecisionWorth& worth : worths) {
    ordered_json values = ordered_json::array();
    for (const DecisionValue& value : worth.values) {
      values.push_back({{"value", value.value},
                        {"candidates", value.candidates},
                        {"failed", value.failed},
                        {"best_seconds", SecondsJson(value.best_seconds)},
                        {"best_without_seconds", SecondsJson(value.best_without_seconds)}});
    }
    rows.push_back({{"task", worth.task},
                    {"decision", worth.decision},
                    {"chosen", worth.chosen},
                    {"without", SecondsJson(worth.without)},
                    {"values", std::move(values)}});
  }
  return rows;
}

// The finalists of each task in the order that the round found.
ordered_json FinalJson(std::vector<StoredRecord> records, const std::vector<Task>& tasks) {
  std::map<std::pair<std::string, std::string>, uint32_t> task_of;
  for (const Task& task : tasks)
    task_of.emplace(std::make_pair(task.key.workload_hash, task.key.target), task.index);
  const auto number = [&task_of](const StoredRecord& stored) {
    const auto found = task_of.find({stored.record.workload_hash(), stored.record.target()});
    return found == task_of.end() ? -1 : static_cast<int64_t>(found->second);
  };
  // A job that was interrupted within a round may have held another: the latest counts.
  std::map<int64_t, std::string> latest;
  for (const StoredRecord& stored : records)
    latest[number(stored)] = stored.record.result().timing().final_round();
  std::erase_if(records, [&](const StoredRecord& stored) {
    return latest[number(stored)] != stored.record.result().timing().final_round();
  });
  std::ranges::stable_sort(records, [&](const StoredRecord& a, const StoredRecord& b) {
    return std::make_pair(number(a), RankSeconds(a.record.result().timing())) <
           std::make_pair(number(b), RankSeconds(b.record.result().timing()));
  });
  ordered_json rows = ordered_json::array();
  for (const StoredRecord& stored : records) {
    const v1::Timing& timing = stored.record.result().timing();
    const absl::StatusOr<Trace> trace = ParseTrace(stored.record.trace());
    rows.push_back({{"task", number(stored)},
                    {"id", stored.id},
                    {"trial", stored.record.trial()},
                    {"seconds", timing.seconds()},
                    {"ci_low_seconds", timing.ci_low_seconds()},
                    {"ci_high_seconds", timing.ci_high_seconds()},
                    {"rank_seconds", RankSeconds(timing)},
                    {"sketch", trace.ok() ? PrintSketch(*trace) : ""}});
  }
  return rows;
}

ordered_json ReportDevicesJson(const JobRecords& records) {
  ordered_json rows = ordered_json::array();
  for (const auto& [name, device] : records.devices) rows.push_back(MessageToJson(device));
  return rows;
}

}  // namespace

absl::StatusOr<ordered_json> ReportData(TuningLog* log, const std::string& job) {
  const JobStore store(log);
  MYCC_ASSIGN_OR_RETURN(const v1::JobProgress progress, JobListing::ReadFromLog(log, job));
  MYCC_ASSIGN_OR_RETURN(const std::vector<Task> tasks, store.LoadTasks(job));
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> keys, ReadTaskKeys(*log, job));
  MYCC_ASSIGN_OR_RETURN(const std::vector<CandidateRow> rows, ReadRows(*log, job));
  if (rows.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("job ", job, " has no results in ", log->path(),
                                                      "; expected at least one measured candidate"));
  }
  MYCC_ASSIGN_OR_RETURN(const JobRecords records, ReadJobRecords(*log, job));
  MYCC_ASSIGN_OR_RETURN(const std::vector<GenerationFacts> generations, ReadGenerations(log, job));
  Convergence convergence(keys);
  for (const CandidateRow& row : rows) convergence.Add(row);
  std::map<int64_t, uint32_t> task_of_key;
  for (size_t task = 0; task < keys.size(); ++task) task_of_key[keys[task]] = static_cast<uint32_t>(task);
  ordered_json data = JobJson(progress, convergence.tasks());
  data["version"] = ProgramVersion();
  data["candidates"] = CandidatesJson(rows, keys)["candidates"];
  data["decisions"] = DecisionsJson(WorthOfDecisions(DecidedOf(rows, task_of_key)));
  data["failures"] = FailuresJson(records.failures)["kinds"];
  data["generations"] = GenerationsJson(generations);
  data["final"] = FinalJson(records.final_records, tasks);
  data["devices"] = ReportDevicesJson(records);
  return data;
}

std::string ReportPage(const ordered_json& data) {
  const std::string page = Gunzip(ReportTemplate());
  const size_t place = page.find(kReportData);
  MYCC_CHECK(place != std::string::npos) << "the report's page has no place for its data";
  // `<` occurs in JSON within strings alone, so no text can end the element that it stands in.
  const std::string text = absl::StrReplaceAll(DumpJson(data), {{"<", "\\u003c"}});
  return absl::StrCat(page.substr(0, place), text, page.substr(place + kReportData.size()));
}

absl::Status LogReportCommand(const LogReportArgs& args, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(args.log, OpenMode::kRead));
  MYCC_ASSIGN_OR_RETURN(const ReportedJob reported, ChooseReportedJob(log.get(), args.job));
  MYCC_ASSIGN_OR_RETURN(const ordered_json data, ReportData(log.get(), reported.id));
  const std::string text = args.json ? DumpJson(data) + "\n" : ReportPage(data);
  const std::string output = !args.output.empty() ? args.output : args.json ? "-" : "report.html";
  if (IsStandardOutput(output)) {
    out << text;
    return absl::OkStatus();
  }
  MYCC_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(output));
  file.stream() << text;
  MYCC_RETURN_IF_ERROR(file.Commit());
  out << output << ": " << HowMany(data["candidates"].size(), "result") << " of job " << reported.id << ", "
      << (text.size() + 1023) / 1024 << " KiB\n";
  if (args.job.empty() && !reported.others.empty())
    out << "it is the newest; the log has also " << reported.others << "\n";
  return absl::OkStatus();
}

}  // namespace mycc
