#include "db/log_commands.h"

#include <fstream>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/os_error.h"
#include "base/output_file.h"
#include "base/status.h"
#include "db/json_lines.h"
#include "db/log_report.h"
#include "db/log_stats.h"
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

// The damaged records that a command leaves out. It outlives the logs that it watches.
class LeftOut {
 public:
  void Watch(TuningLog* log) {
    log->OnDamage([this, path = log->path()](int64_t id, const absl::Status&) { ids_[path].insert(id); });
  }
  // `done`, or DataLoss for a command that has done all else.
  absl::Status After(const absl::Status& done) const {
    if (!done.ok() || ids_.empty()) return done;
    std::vector<std::string> logs;
    for (const auto& [path, ids] : ids_)
      logs.push_back(absl::StrCat(path, ": damaged and left out: record ", absl::StrJoin(ids, ", ")));
    return absl::DataLossError(absl::StrCat(absl::StrJoin(logs, "; "), "; restore the log from a backup"));
  }

 private:
  std::map<std::string, std::set<int64_t>> ids_;
};

absl::StatusOr<int64_t> Export(const TuningLog& log, const LogExportArgs& args, std::ostream& out) {
  return args.format == "t4" ? ExportT4(log, args.filter, out) : ExportJsonLines(log, args.filter, out);
}

void WriteCounts(const std::string& from, const std::string& to, const TransferCounts& counts,
                 std::ostream& out) {
  out << absl::StrFormat("%s: %d records added to %s, %d known already, %d pins and bans taken over", from,
                         counts.added, to, counts.known, counts.overrides);
  if (counts.namesakes > 0) {
    out << absl::StrFormat("; %d of those added have the name of another result, and are kept beside it",
                           counts.namesakes);
  }
  out << "\n";
}

absl::Status ImportFiles(const LogImportArgs& args, TuningLog* log, std::ostream& out) {
  for (const std::string& input : args.inputs) {
    std::ifstream in(input, std::ios::binary);
    if (!in) return OsError("read", input);
    MYCC_ASSIGN_OR_RETURN(const TransferCounts counts, ImportJsonLines(in, input, log));
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

// A key, and the protocol under which its records rank.
using Ranking = std::tuple<std::string, std::string, v1::TimingProtocol>;

// The rankings of the filter's records, in the order in which they came into the log.
absl::StatusOr<std::vector<Ranking>> RankingsOf(const TuningLog& log, const RecordFilter& filter) {
  std::set<Ranking> known;
  std::vector<Ranking> rankings;
  RecordFilter ok = filter;
  ok.statuses = {v1::MEASURE_STATUS_OK};
  MYCC_RETURN_IF_ERROR(log.ForEach(ok, [&](const StoredRecord& stored) {
    const v1::Record& record = stored.record;
    const Ranking ranking{record.workload_hash(), record.target(), record.result().timing().protocol()};
    if (known.insert(ranking).second) rankings.push_back(ranking);
    return absl::OkStatus();
  }));
  return rankings;
}

// "ok, 3.861 us (was 4.037 us), the same code" or "wrong_result: output y: element 3 is 1, expected 2".
std::string Comparison(const v1::MeasureResult& before, const v1::MeasureResult& now) {
  const std::string status = StatusName(now.status());
  if (!now.error().empty()) return absl::StrCat(status, ": ", now.error());
  if (now.status() != v1::MEASURE_STATUS_OK) return status;
  return absl::StrCat(status, ", ", FormatSeconds(now.timing().seconds()), " (was ",
                      FormatSeconds(before.timing().seconds()), "), ",
                      now.code_digest() == before.code_digest() ? "the same code" : "other code than before");
}

// Keeps a record's new result, beside the old one; returns its id.
absl::StatusOr<int64_t> KeepResult(const v1::Record& old, v1::MeasureResult result, TuningLog* log) {
  v1::Record record = old;
  record.set_trial(RemeasuredTrialName(old.trial(), log->now()));
  record.set_created_unix_micros(log->now());
  record.set_recorded_unix_micros(0);
  record.set_attempt(1);
  // A time of this moment does not compare with those of a final round, whose order stands for the same code.
  const v1::Timing& before = old.result().timing();
  if (before.rank_seconds() > 0 && result.status() == v1::MEASURE_STATUS_OK) {
    const bool same_code = result.code_digest() == old.result().code_digest();
    v1::Timing& now = *result.mutable_timing();
    now.set_rank_seconds(same_code ? before.rank_seconds() : now.seconds());
  }
  *record.mutable_result() = std::move(result);
  MYCC_ASSIGN_OR_RETURN(const std::vector<AppendedRecord> appended, log->Append({record}));
  return appended[0].id;
}

enum class Verdict { kConfirmed, kNotConfirmed, kForAnotherMachine };

// Measures the best record of a ranking again, and whichever is the best then, until a result of now is: what
// was second may be stale as well.
absl::StatusOr<Verdict> VerifyRanking(const Ranking& ranking, const Remeasure& remeasure, TuningLog* log,
                                      std::ostream& out) {
  const auto& [workload_hash, target, protocol] = ranking;
  std::set<int64_t> tried, results;
  while (true) {
    const absl::StatusOr<StoredRecord> best = log->Best({workload_hash, target}, protocol);
    if (absl::IsNotFound(best.status())) return Verdict::kNotConfirmed;
    MYCC_RETURN_IF_ERROR(best.status());
    if (results.contains(best->id)) return Verdict::kConfirmed;
    // A failure that says nothing about the results of other builds leaves the record where it was.
    if (!tried.insert(best->id).second) return Verdict::kNotConfirmed;
    out << "record " << best->id << " of " << best->record.workload_name() << ": ";
    absl::StatusOr<v1::MeasureResult> result = remeasure(best->record);
    if (!result.ok() || IsInfrastructureFailure(result->status())) {
      out << "not measured: " << (result.ok() ? result->error() : std::string(result.status().message()))
          << std::endl;
      return absl::IsFailedPrecondition(result.status()) ? Verdict::kForAnotherMachine
                                                         : Verdict::kNotConfirmed;
    }
    const std::string comparison = Comparison(best->record.result(), *result);
    MYCC_ASSIGN_OR_RETURN(const int64_t id, KeepResult(best->record, *std::move(result), log));
    results.insert(id);
    out << comparison << ", kept as record " << id << std::endl;
  }
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
  MYCC_ASSIGN_OR_RETURN(const StoredRecord record, FindRecord(*log, args.record));
  args.json ? WriteRecordJson(record, out) : WriteRecordText(record, out);
  return absl::OkStatus();
}

absl::Status LogExportCommand(const LogExportArgs& args, std::ostream& out) {
  if (args.format != "jsonl" && args.format != "t4") {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown export format \"", args.format, "\"; expected jsonl or t4"));
  }
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
  out << args.output << ": " << *count << " records of " << args.log << "\n";
  return left_out.After(absl::OkStatus());
}

absl::Status LogImportCommand(const LogImportArgs& args, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(args.log, OpenMode::kCreate));
  return CloseAfter(ImportFiles(args, log.get(), out), log.get());
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

absl::Status LogVerifyCommand(const LogVerifyArgs& args, const Remeasure& remeasure, std::ostream& out) {
  LeftOut left_out;
  MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(args.log, OpenMode::kWrite));
  left_out.Watch(log.get());
  MYCC_ASSIGN_OR_RETURN(const std::vector<Ranking> rankings, RankingsOf(*log, args.filter));
  if (rankings.empty())
    return absl::NotFoundError(absl::StrCat(args.log, ": holds no ok record of what was asked for"));
  std::map<Verdict, int> verdicts;
  for (const Ranking& ranking : rankings) {
    MYCC_ASSIGN_OR_RETURN(const Verdict verdict, VerifyRanking(ranking, remeasure, log.get(), out));
    ++verdicts[verdict];
  }
  const int confirmed = verdicts[Verdict::kConfirmed], refuted = verdicts[Verdict::kNotConfirmed];
  out << confirmed << " of " << confirmed + refuted << " best records confirmed";
  if (const int others = verdicts[Verdict::kForAnotherMachine]; others > 0) {
    out << ", and " << others << " for other machines";
  }
  out << "\n";
  MYCC_RETURN_IF_ERROR(log->Close());
  if (refuted == 0) return left_out.After(absl::OkStatus());
  return absl::FailedPreconditionError(
      absl::StrCat(args.log, ": ", refuted, " of ", confirmed + refuted, " best records were not confirmed"));
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
  if (counts.records_in_use > 0) {
    out << absl::StrFormat("%d more records stay, which jobs need that are running or were cancelled\n",
                           counts.records_in_use);
  }
  return log->Close();
}

}  // namespace mycc
