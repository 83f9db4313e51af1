#include "mycc_tune/upgrade_check.h"

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <ostream>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "command/table.h"
#include "db/log_diff.h"
#include "proto/utf8.h"
#include "server/listed_job.h"
#include "tuner/search/strategy.h"

namespace mycc {
namespace {

using nlohmann::ordered_json;

constexpr size_t kBatchRecords = 256;
constexpr size_t kMostShown = 20;
constexpr size_t kShortHashDigits = 12;
constexpr int64_t kMostJobBytes = 8 << 20;
constexpr int kMostJobTasks = 5000;

bool Wants(const RecordFilter& filter, const RankedKey& key) {
  return (filter.workload_name.empty() || filter.workload_name == key.workload_name) &&
         absl::StartsWith(key.key.workload_hash, filter.workload_hash) &&
         (filter.target.empty() || filter.target == key.key.target) &&
         (filter.protocol == v1::TIMING_PROTOCOL_UNSPECIFIED || filter.protocol == key.protocol);
}

void Judge(const std::vector<StoredRecord>& records, const std::vector<CodeNow>& codes,
           UpgradeReport* report) {
  for (size_t i = 0; i < records.size(); ++i) {
    const v1::Record& record = records[i].record;
    CodeCounts& counts = report->keys[{record.target(), record.workload_name(), record.workload_hash()}];
    const std::string& measured = record.result().code_digest();
    if (codes[i].kind == CodeNow::Kind::kRefused) {
      ++counts.gone;
      report->changed.push_back({records[i].id, true, codes[i].text});
    } else if (codes[i].kind == CodeNow::Kind::kUnknown || measured.empty()) {
      ++counts.unknown;
      if (report->why_unknown.empty())
        report->why_unknown = measured.empty() ? "the record has no code digest" : codes[i].text;
    } else if (codes[i].text == measured) {
      ++counts.same;
    } else {
      ++counts.changed;
      report->changed.push_back({records[i].id, false, ""});
    }
  }
}

ordered_json CountsJson(const CodeCounts& counts) {
  return {{"records", counts.all()},
          {"same", counts.same},
          {"changed", counts.changed},
          {"gone", counts.gone},
          {"unknown", counts.unknown}};
}

void WriteReportJson(const UpgradeCheckArgs& args, const UpgradeReport& report, const CodeCounts& all,
                     std::ostream& out) {
  for (const auto& [key, counts] : report.keys) {
    const auto& [target, name, hash] = key;
    ordered_json row{{"workload_name", name}, {"workload_hash", hash}, {"target", target}};
    row.update(CountsJson(counts));
    out << row << "\n";
  }
  ordered_json changed = ordered_json::array(), gone = ordered_json::array();
  for (const ChangedRecord& record : report.changed) {
    if (record.is_gone) {
      gone.push_back({{"record", record.id}, {"why", record.why}});
    } else {
      changed.push_back(record.id);
    }
  }
  ordered_json last{{"log", args.log}};
  last.update(CountsJson(all));
  last["changed_records"] = std::move(changed);
  last["gone_records"] = std::move(gone);
  out << last << "\n";
}

std::vector<std::string> CountCells(std::string first, const std::string& second, const CodeCounts& counts) {
  return {std::move(first),
          absl::StrCat(counts.all()),
          absl::StrCat(counts.same),
          absl::StrCat(counts.changed),
          absl::StrCat(counts.gone),
          absl::StrCat(counts.unknown),
          second};
}

}  // namespace

void CodeCounts::Add(const CodeCounts& other) {
  same += other.same;
  changed += other.changed;
  gone += other.gone;
  unknown += other.unknown;
}

CodesOf CodesInProcesses() {
  return [](const std::vector<StoredRecord>& records) {
    std::vector<CodeNow> codes(records.size());
    std::atomic<size_t> next = 0;
    const size_t workers =
        std::min<size_t>(std::max(1u, std::thread::hardware_concurrency()), records.size());
    std::vector<std::thread> threads;
    for (size_t worker = 0; worker < workers; ++worker) {
      threads.emplace_back([&] {
        CodeProcess process;
        for (size_t i = next++; i < records.size(); i = next++) codes[i] = process.CodeOf(records[i].record);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return codes;
  };
}

absl::StatusOr<UpgradeReport> CheckUpgrade(const TuningLog& log, const UpgradeCheckArgs& args,
                                           const CodesOf& codes_of) {
  UpgradeReport report;
  std::vector<StoredRecord> batch;
  const auto judge_batch = [&] {
    Judge(batch, codes_of(batch), &report);
    batch.clear();
  };
  MYCC_ASSIGN_OR_RETURN(const std::vector<RankedKey> keys, RankedKeys(log));
  for (const RankedKey& key : keys) {
    if (!Wants(args.filter, key)) continue;
    MYCC_ASSIGN_OR_RETURN(std::vector<StoredRecord> best, log.TopK(key.key, key.protocol, args.top));
    // A pin stands first under each protocol, whichever it was timed by.
    std::erase_if(best, [&key](const StoredRecord& record) {
      return record.record.result().timing().protocol() != key.protocol;
    });
    std::move(best.begin(), best.end(), std::back_inserter(batch));
    if (batch.size() >= kBatchRecords) judge_batch();
  }
  if (!batch.empty()) judge_batch();
  return report;
}

absl::StatusOr<std::vector<v1::JobSpec>> JobsOfChanged(const TuningLog& log, const UpgradeReport& report) {
  std::vector<v1::JobSpec> jobs;
  struct Open {
    size_t job = 0;  // that takes the next ones
    int64_t bytes = 0;
  };
  std::map<v1::TimingProtocol, Open> open;
  for (const ChangedRecord& changed : report.changed) {
    if (changed.is_gone) continue;
    MYCC_ASSIGN_OR_RETURN(const StoredRecord stored, log.Get(changed.id));
    const v1::Record& record = stored.record;
    const v1::TimingProtocol protocol = record.result().timing().protocol();
    const auto found = open.find(protocol);
    const bool is_full = found != open.end() && (found->second.bytes > kMostJobBytes ||
                                                 jobs[found->second.job].tasks_size() >= kMostJobTasks);
    if (found == open.end() || is_full) {
      open[protocol] = {jobs.size(), 0};
      v1::JobSpec& job = jobs.emplace_back();
      job.set_strategy(kListedStrategy);
      job.set_protocol(protocol);
      job.set_fresh(true);
    }
    v1::TaskSpec& task = *jobs[open[protocol].job].add_tasks();
    task.set_workload(WithName(record.workload(), record.workload_name()));
    task.set_target(record.target());
    task.set_count(1);
    task.add_candidates(record.trace());
    open[protocol].bytes += static_cast<int64_t>(task.ByteSizeLong());
  }
  return jobs;
}

void WriteUpgradeReport(const UpgradeCheckArgs& args, const UpgradeReport& report, std::ostream& out) {
  CodeCounts all;
  std::map<std::string, CodeCounts> targets;
  for (const auto& [key, counts] : report.keys) {
    all.Add(counts);
    targets[std::get<0>(key)].Add(counts);
  }
  if (args.json) return WriteReportJson(args, report, all, out);
  std::vector<std::vector<std::string>> rows = {
      {"workload", "best", "same", "changed", "gone", "unknown", "target"}};
  size_t left_out = 0;
  for (const auto& [key, counts] : report.keys) {
    const auto& [target, name, hash] = key;
    if (counts.same == counts.all()) continue;
    if (rows.size() > kMostShown) {
      ++left_out;
      continue;
    }
    rows.push_back(CountCells(absl::StrCat(name, " ", hash.substr(0, kShortHashDigits)), target, counts));
  }
  if (left_out > 0) rows.push_back({absl::StrCat("and ", left_out, " more"), "", "", "", "", "", ""});
  if (rows.size() > 1) out << FormatTable(rows, {1, 2, 3, 4, 5}) << "\n";
  if (targets.size() > 1) {
    rows = {{"target", "best", "same", "changed", "gone", "unknown", ""}};
    for (const auto& [target, counts] : targets) rows.push_back(CountCells(target, "", counts));
    out << FormatTable(rows, {1, 2, 3, 4, 5}) << "\n";
  }
  for (const ChangedRecord& record : report.changed) {
    if (!record.is_gone) continue;
    out << "record " << record.id << " no longer replays: " << Printable(record.why) << "\n";
    break;
  }
  if (all.unknown > 0) out << "unknown here: " << Printable(report.why_unknown) << "\n";
  out << absl::StrFormat(
      "%s: of %d best records this build makes the same code of %d and other code of %d; %d no longer "
      "replay, %d "
      "cannot be told here\n",
      args.log, all.all(), all.same, all.changed, all.gone, all.unknown);
}

}  // namespace mycc
