#include "db/log_commands.h"

#include <fstream>
#include <memory>
#include <ostream>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "db/json_lines.h"
#include "db/log_report.h"
#include "db/log_stats.h"
#include "db/new_file.h"
#include "db/t4.h"
#include "db/tuning_log.h"
#include "proto/names.h"

namespace mycc {
namespace {

// A record by its id or by its trial's name.
absl::StatusOr<StoredRecord> FindRecord(const TuningLog& log, const std::string& name) {
  int64_t id = 0;
  return absl::SimpleAtoi(name, &id) ? log.Get(id) : log.Find(name);
}

absl::StatusOr<int64_t> Export(const TuningLog& log, const LogExportArgs& args, std::ostream& out) {
  return args.format == "t4" ? ExportT4(log, args.filter, out) : ExportJsonLines(log, args.filter, out);
}

void WriteCounts(const std::string& from, const std::string& to, const TransferCounts& counts,
                 std::ostream& out) {
  out << absl::StrFormat("%s: %d records added to %s, %d known already, %d pins and bans taken over\n", from,
                         counts.added, to, counts.known, counts.overrides);
}

// The best record of each key and protocol among the filter's records, each once.
absl::StatusOr<std::vector<StoredRecord>> BestRecords(const TuningLog& log, const RecordFilter& filter) {
  std::set<std::tuple<std::string, std::string, int>> asked;
  std::set<int64_t> listed;
  std::vector<StoredRecord> best;
  RecordFilter ok = filter;
  ok.statuses = {v1::MEASURE_STATUS_OK};
  MYCC_RETURN_IF_ERROR(log.ForEach(ok, [&](const StoredRecord& stored) -> absl::Status {
    const v1::Record& record = stored.record;
    const v1::TimingProtocol protocol = record.result().timing().protocol();
    if (!asked.insert({record.workload_hash(), record.target(), protocol}).second) return absl::OkStatus();
    absl::StatusOr<StoredRecord> found = log.Best({record.workload_hash(), record.target()}, protocol);
    if (absl::IsNotFound(found.status())) return absl::OkStatus();
    MYCC_RETURN_IF_ERROR(found.status());
    if (listed.insert(found->id).second) best.push_back(*std::move(found));
    return absl::OkStatus();
  }));
  return best;
}

// Measures one record again; true when it is confirmed.
absl::StatusOr<bool> Verify(const StoredRecord& best, const Remeasure& remeasure, TuningLog* log,
                            std::ostream& out) {
  const std::string name = absl::StrCat("record ", best.id, " of ", best.record.workload_name(), ": ");
  absl::StatusOr<v1::MeasureResult> result = remeasure(best.record);
  if (!result.ok() || IsInfrastructureFailure(result->status())) {
    const std::string why = result.ok() ? result->error() : std::string(result.status().message());
    out << name << "not measured: " << why << std::endl;
    return false;
  }
  v1::Record record = best.record;
  record.set_trial(RemeasuredTrialName(best.record.trial(), log->now()));
  record.set_created_unix_micros(log->now());
  record.set_recorded_unix_micros(0);
  record.set_attempt(1);
  *record.mutable_result() = *std::move(result);
  MYCC_ASSIGN_OR_RETURN(const std::vector<AppendedRecord> appended, log->Append({record}));

  const v1::MeasureResult& before = best.record.result();
  const v1::MeasureResult& now = record.result();
  const bool confirmed = now.status() == v1::MEASURE_STATUS_OK && now.verification().passed();
  out << name << StatusName(now.status());
  if (confirmed) {
    out << ", " << FormatSeconds(now.timing().seconds()) << " (was "
        << FormatSeconds(before.timing().seconds()) << "), "
        << (now.code_digest() == before.code_digest() ? "the same code" : "other code than before");
  } else if (!now.error().empty()) {
    out << ": " << now.error();
  }
  out << ", kept as record " << appended[0].id << std::endl;
  return confirmed;
}

}  // namespace

absl::Status LogStatsCommand(const LogStatsArgs& args, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(args.log, OpenMode::kRead));
  MYCC_ASSIGN_OR_RETURN(const LogStats stats, ReadLogStats(*log));
  args.json ? WriteStatsJson(args.log, stats, out) : WriteStatsText(args.log, stats, out);
  return absl::OkStatus();
}

absl::Status LogListCommand(const LogListArgs& args, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(args.log, OpenMode::kRead));
  if (args.json) {
    return log->ForEach(args.filter, [&](const StoredRecord& stored) {
      WriteRecordJson(stored, out);
      return absl::OkStatus();
    });
  }
  MYCC_ASSIGN_OR_RETURN(const std::vector<StoredRecord> records, log->List(args.filter));
  WriteRecordTable(records, out);
  return absl::OkStatus();
}

absl::Status LogShowCommand(const LogShowArgs& args, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(args.log, OpenMode::kRead));
  MYCC_ASSIGN_OR_RETURN(const StoredRecord record, FindRecord(*log, args.record));
  args.json ? WriteRecordJson(record, out) : WriteRecordText(record, out);
  return absl::OkStatus();
}

absl::Status LogExportCommand(const LogExportArgs& args, std::ostream& out) {
  if (args.format != "jsonl" && args.format != "t4") {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown export format \"", args.format, "\"; expected jsonl or t4"));
  }
  MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(args.log, OpenMode::kRead));
  if (args.output.empty() || args.output == "-") return Export(*log, args, out).status();
  MYCC_ASSIGN_OR_RETURN(NewFile file, NewFile::Begin(args.output));
  absl::StatusOr<int64_t> count = Export(*log, args, file.stream());
  MYCC_RETURN_IF_ERROR(count.status());
  MYCC_RETURN_IF_ERROR(file.Commit());
  out << args.output << ": " << *count << " records of " << args.log << "\n";
  return absl::OkStatus();
}

absl::Status LogImportCommand(const LogImportArgs& args, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(args.log, OpenMode::kCreate));
  for (const std::string& input : args.inputs) {
    std::ifstream in(input, std::ios::binary);
    if (!in) return absl::NotFoundError(absl::StrCat(input, ": cannot be read"));
    MYCC_ASSIGN_OR_RETURN(const TransferCounts counts, ImportJsonLines(in, input, log.get()));
    WriteCounts(input, args.log, counts, out);
  }
  return log->Close();
}

absl::Status LogMergeCommand(const LogMergeArgs& args, std::ostream& out) {
  std::vector<std::unique_ptr<TuningLog>> inputs;  // all are judged before the first one is merged
  for (const std::string& input : args.inputs) {
    MYCC_ASSIGN_OR_RETURN(inputs.emplace_back(), TuningLog::Open(input, OpenMode::kRead));
  }
  MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(args.log, OpenMode::kCreate));
  for (const std::unique_ptr<TuningLog>& input : inputs) {
    MYCC_ASSIGN_OR_RETURN(const TransferCounts counts, MergeLog(*input, log.get()));
    WriteCounts(input->path(), args.log, counts, out);
  }
  inputs.clear();
  return log->Close();
}

absl::Status LogVerifyCommand(const LogVerifyArgs& args, const Remeasure& remeasure, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(args.log, OpenMode::kWrite));
  MYCC_ASSIGN_OR_RETURN(const std::vector<StoredRecord> best, BestRecords(*log, args.filter));
  size_t confirmed = 0;
  for (const StoredRecord& record : best) {
    MYCC_ASSIGN_OR_RETURN(const bool one, Verify(record, remeasure, log.get(), out));
    confirmed += one;
  }
  out << confirmed << " of " << best.size() << " best records confirmed\n";
  MYCC_RETURN_IF_ERROR(log->Close());
  if (confirmed == best.size()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(args.log, ": ", best.size() - confirmed, " of ",
                                                    best.size(), " best records were not confirmed"));
}

absl::Status LogOverrideCommand(const LogOverrideArgs& args, std::ostream& out) {
  if (args.reason.empty() && !args.clear) {
    return absl::InvalidArgumentError("a pin or ban needs a reason, for whoever wonders about it later");
  }
  MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(args.log, OpenMode::kWrite));
  MYCC_ASSIGN_OR_RETURN(const StoredRecord record, FindRecord(*log, args.record));
  const absl::Status done =
      args.clear ? log->ClearOverride(record.id) : log->SetOverride(record.id, args.kind, args.reason);
  MYCC_RETURN_IF_ERROR(done);
  const char* what = args.clear                        ? "neither pinned nor banned"
                     : args.kind == OverrideKind::kPin ? "pinned"
                                                       : "banned";
  out << "record " << record.id << " of " << record.record.workload_name() << " is now " << what << "\n";
  return log->Close();
}

absl::Status LogBackupCommand(const LogBackupArgs& args, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(args.log, OpenMode::kRead));
  MYCC_RETURN_IF_ERROR(log->Backup(args.output));
  out << args.output << ": a backup of " << args.log << "\n";
  return absl::OkStatus();
}

absl::Status LogGcCommand(const LogGcArgs& args, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(args.log, OpenMode::kWrite));
  MYCC_ASSIGN_OR_RETURN(const GcCounts counts, CollectGarbage(log.get(), args.policy));
  out << absl::StrFormat("%s: %d records, %d ended jobs, %d models and %d keys %s\n", args.log,
                         counts.records, counts.jobs, counts.models, counts.keys,
                         args.policy.dry_run ? "would be forgotten" : "forgotten");
  return log->Close();
}

}  // namespace mycc
