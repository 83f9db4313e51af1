#include "mycc_tune/log_commands.h"

#include <fstream>
#include <memory>
#include <ostream>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/os_error.h"
#include "base/output_file.h"
#include "base/plural.h"
#include "base/status.h"
#include "codegen/target/target.h"
#include "db/json_lines.h"
#include "db/log_stats.h"
#include "db/t4.h"
#include "db/tuning_log.h"
#include "mycc_tune/foreign_report.h"
#include "mycc_tune/job_generations.h"
#include "mycc_tune/left_out.h"
#include "mycc_tune/log_report.h"
#include "mycc_tune/pack_commands.h"
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
  out << absl::StrFormat("%s: %s added to %s, %d known already, %d pins and bans taken over", from,
                         HowMany(counts.added, "record"), to, counts.known, counts.overrides);
  if (counts.namesakes > 0) {
    out << absl::StrFormat("; %d of those added have the name of another result, and are kept beside it",
                           counts.namesakes);
  }
  if (counts.foreign > 0) out << "; " << HowMany(counts.foreign, "foreign record");
  out << "\n";
}

absl::Status TargetProblem(const std::string& target) { return ParseTarget(target).status(); }

absl::Status ImportFiles(const LogImportArgs& args, TuningLog* log, std::ostream& out) {
  for (const std::string& input : args.inputs) {
    std::ifstream in(input, std::ios::binary);
    if (!in) return OsError("read", input);
    MYCC_ASSIGN_OR_RETURN(const TransferCounts counts, ImportJsonLines(in, input, log, TargetProblem));
    WriteCounts(input, args.log, counts, out);
  }
  return absl::OkStatus();
}

absl::Status MergeLogs(const std::vector<std::unique_ptr<TuningLog>>& inputs, TuningLog* log,
                       std::ostream& out) {
  for (const std::unique_ptr<TuningLog>& input : inputs) {
    MYCC_ASSIGN_OR_RETURN(const TransferCounts counts, MergeLog(*input, log));
    WriteCounts(input->path(), log->path(), counts, out);
  }
  return absl::OkStatus();
}

// A command that failed leaves no log behind that it has made.
absl::Status CloseAfter(const absl::Status& done, TuningLog* log) {
  if (done.ok()) return log->Close();
  log->Abandon();
  return done;
}

}  // namespace

absl::Status LogStatsCommand(const LogStatsArgs& args, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(args.log, OpenMode::kRead));
  MYCC_ASSIGN_OR_RETURN(const LogStats stats, ReadLogStats(*log));
  args.json ? WriteStatsJson(args.log, stats, out) : WriteStatsText(args.log, stats, out);
  return absl::OkStatus();
}

absl::Status LogListCommand(const LogListArgs& args, std::ostream& out) {
  LeftOut left_out;
  MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(args.log, OpenMode::kRead));
  left_out.Watch(log.get());
  if (args.foreign) return ListForeignRecords(args, *log, out);
  if (args.json) {
    return left_out.After(log->ForEach(args.filter, [&](const StoredRecord& stored) {
      WriteRecordJson(stored, out);
      return absl::OkStatus();
    }));
  }
  MYCC_ASSIGN_OR_RETURN(const std::vector<StoredRecord> records, log->List(args.filter));
  WriteRecordTable(records, out);
  return left_out.After(absl::OkStatus());
}

absl::Status LogShowCommand(const LogShowArgs& args, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(args.log, OpenMode::kRead));
  if (IsJobId(args.record)) return ShowJob(log.get(), args.record, args.json, out);
  MYCC_ASSIGN_OR_RETURN(const StoredRecord record, FindRecord(*log, args.record));
  args.json ? WriteRecordJson(record, out) : WriteRecordText(record, out);
  return absl::OkStatus();
}

absl::Status LogExportCommand(const LogExportArgs& args, std::ostream& out) {
  if (args.format != "jsonl" && args.format != "t4") {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown export format \"", args.format, "\"; expected jsonl or t4"));
  }
  if (!args.sign.empty()) return ExportSigned(args, out);
  LeftOut left_out;
  MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(args.log, OpenMode::kRead));
  left_out.Watch(log.get());
  if (args.output.empty() || IsStandardOutput(args.output))
    return left_out.After(Export(*log, args, out).status());
  MYCC_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(args.output));
  const absl::StatusOr<int64_t> count = Export(*log, args, file.stream());
  MYCC_RETURN_IF_ERROR(file.CloseDurably());  // says why nothing could be written, where that is what failed
  MYCC_RETURN_IF_ERROR(count.status());
  MYCC_RETURN_IF_ERROR(file.Commit());
  out << args.output << ": " << HowMany(*count, "record") << " of " << args.log << "\n";
  return left_out.After(absl::OkStatus());
}

absl::Status LogImportCommand(const LogImportArgs& args, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(args.log, OpenMode::kCreate));
  return CloseAfter(
      args.verify.empty() ? ImportFiles(args, log.get(), out) : ImportSigned(args, log.get(), out),
      log.get());
}

absl::Status LogMergeCommand(const LogMergeArgs& args, std::ostream& out) {
  LeftOut left_out;
  std::vector<std::unique_ptr<TuningLog>> inputs;  // all are judged before the first one is merged
  for (const std::string& input : args.inputs) {
    MYCC_ASSIGN_OR_RETURN(inputs.emplace_back(), TuningLog::Open(input, OpenMode::kRead));
    left_out.Watch(inputs.back().get());
  }
  MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(args.log, OpenMode::kCreate));
  const absl::Status merged = MergeLogs(inputs, log.get(), out);
  inputs.clear();
  return left_out.After(CloseAfter(merged, log.get()));
}

absl::Status LogOverrideCommand(const LogOverrideArgs& args, std::ostream& out) {
  if (args.reason.empty() && !args.clear) {
    return absl::InvalidArgumentError("a pin or ban needs a reason, for later readers");
  }
  MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(args.log, OpenMode::kWrite));
  MYCC_ASSIGN_OR_RETURN(const StoredRecord record, FindRecord(*log, args.record));
  const absl::Status done = args.clear ? log->ClearOverride(record.id, args.kind)
                                       : log->SetOverride(record.id, args.kind, args.reason);
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
  out << absl::StrFormat("%s: %s, %s, %s and %s %s\n", args.log, HowMany(counts.records, "record"),
                         HowMany(counts.jobs, "ended job"), HowMany(counts.models, "model"),
                         HowMany(counts.keys, "key"),
                         args.policy.dry_run ? "would be forgotten" : "forgotten");
  if (counts.foreign > 0) {
    out << absl::StrFormat("%d foreign records too, whose schedules were measured here\n", counts.foreign);
  }
  if (counts.records_in_use > 0) {
    out << absl::StrFormat("%d more records stay, which jobs need that are running or were cancelled\n",
                           counts.records_in_use);
  }
  return log->Close();
}

}  // namespace mycc
