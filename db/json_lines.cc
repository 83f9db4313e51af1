#include "db/json_lines.h"

#include <algorithm>
#include <cmath>
#include <istream>
#include <ostream>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/status.h"
#include "codegen/schedule/trace_names.h"
#include "db/message_json.h"
#include "db/override_table.h"

namespace mycc {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kFormatVersion = 1;
constexpr char kFormatKey[] = "mycc_tuning_log";
constexpr size_t kMostLineBytes = 64 << 20;

// Adds records and overrides to a log in one transaction.
class Importer {
 public:
  static absl::StatusOr<Importer> Begin(TuningLog* log) {
    MYCC_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(log->database()));
    return Importer(log, std::move(transaction));
  }

  absl::Status AddRecord(const v1::Record& record) {
    MYCC_ASSIGN_OR_RETURN(const AppendedRecord appended, InsertRecord(log_->database(), record, log_->now()));
    ++(appended.is_new ? counts_.added : counts_.known);
    counts_.namesakes += appended.has_namesakes;
    ids_[record.trial()] = appended.id;
    return absl::OkStatus();
  }

  absl::Status AddOverride(const std::string& trial, const Override& override_by) {
    const absl::StatusOr<int64_t> id = IdOf(trial);
    if (absl::IsNotFound(id.status())) {
      return absl::InvalidArgumentError(
          absl::StrCat("no record of trial \"", trial, "\" stands before its pin or ban"));
    }
    MYCC_RETURN_IF_ERROR(id.status());
    MYCC_ASSIGN_OR_RETURN(const bool took_effect, MergeOverride(log_->database(), *id, override_by));
    if (took_effect) ++counts_.overrides;
    return absl::OkStatus();
  }

  absl::StatusOr<TransferCounts> Commit() {
    MYCC_RETURN_IF_ERROR(transaction_.Commit());
    return counts_;
  }

 private:
  Importer(TuningLog* log, Transaction transaction) : log_(log), transaction_(std::move(transaction)) {}

  // A name means the record that came under it; the log may know that by another name, and others by this.
  absl::StatusOr<int64_t> IdOf(const std::string& trial) const {
    const auto came = ids_.find(trial);
    if (came != ids_.end()) return came->second;
    return log_->database()->ReadInt("SELECT id FROM records WHERE trial = ?1", {trial});
  }

  TuningLog* log_;
  Transaction transaction_;
  std::unordered_map<std::string, int64_t> ids_;  // by the names of what came
  TransferCounts counts_;
};

const char* OverrideKey(OverrideKind kind) { return kind == OverrideKind::kPin ? "pin" : "ban"; }

absl::Status ImportOverride(const json& value, OverrideKind kind, Importer* importer) {
  const bool known_keys = value.is_object() && value.size() == 3 && value.contains("trial") &&
                          value.contains("reason") && value.contains("made_unix_micros");
  if (!known_keys || !value["trial"].is_string() || !value["reason"].is_string() ||
      !value["made_unix_micros"].is_number_unsigned()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", OverrideKey(kind),
                     "\": expected an object with the texts \"trial\" and \"reason\" and "
                     "the number \"made_unix_micros\""));
  }
  return importer->AddOverride(value["trial"], {kind, value["reason"], value["made_unix_micros"]});
}

// A median lies among its samples. The time of a candidate that was timed in turn with others is corrected by
// theirs, and may lie beyond them, by far less than this factor.
constexpr double kBeyondSamples = 10;

absl::Status CheckTimes(const v1::Timing& timing) {
  const double seconds = timing.seconds(), low = timing.ci_low_seconds(), high = timing.ci_high_seconds();
  if (!std::isfinite(seconds) || seconds <= 0) return absl::OkStatus();  // CheckRecord refuses it
  if ((low != 0 || high != 0) && !(low <= seconds && seconds <= high)) {
    return absl::InvalidArgumentError(absl::StrCat("key \"result.timing.seconds\": ", seconds,
                                                   " lies outside of its interval; expected a number from ",
                                                   low, " to ", high));
  }
  if (timing.samples_seconds().empty()) return absl::OkStatus();
  const auto [least, most] =
      std::minmax_element(timing.samples_seconds().begin(), timing.samples_seconds().end());
  if (*least / kBeyondSamples <= seconds && seconds <= *most * kBeyondSamples) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("key \"result.timing.seconds\": ", seconds,
                   " does not fit \"samples_seconds\"; expected their median, from ", *least, " to ", *most));
}

absl::Status ImportRecord(const json& value, const CheckTarget& check_target, Importer* importer) {
  v1::Record record;
  MYCC_RETURN_IF_ERROR(MessageFromJson(value, &record));
  if (record.result().status() == v1::MEASURE_STATUS_OK)
    MYCC_RETURN_IF_ERROR(CheckTimes(record.result().timing()));
  if (check_target != nullptr && !record.target().empty()) {
    if (const absl::Status target = check_target(record.target()); !target.ok())
      return absl::InvalidArgumentError(absl::StrCat("key \"target\": ", std::string(target.message())));
  }
  // A wrong hash would file the record under another workload, where it would be replayed.
  if (Sha256Hex(record.workload()) != record.workload_hash()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "key \"workload_hash\": expected the SHA-256 of \"workload\", ", Sha256Hex(record.workload())));
  }
  return importer->AddRecord(record);
}

absl::Status CheckFormat(const json& version) {
  if (version == kFormatVersion) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("format version ", version.is_number() ? version.dump() : std::string("of the wrong type"),
                   "; this mycc-tune reads version ", kFormatVersion));
}

absl::Status ImportLine(const std::string& line, bool first, const CheckTarget& check_target,
                        Importer* importer) {
  const json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || object.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("expected one JSON object with one of the keys \"",
                                                   kFormatKey, "\", \"record\", \"pin\", \"ban\""));
  }
  const std::string& key = object.begin().key();
  if (key == kFormatKey) return CheckFormat(object.front());
  if (first) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected {\"", kFormatKey, "\":", kFormatVersion, "} first"));
  }
  if (key == "record") return ImportRecord(object.front(), check_target, importer);
  if (key == "pin") return ImportOverride(object.front(), OverrideKind::kPin, importer);
  if (key == "ban") return ImportOverride(object.front(), OverrideKind::kBan, importer);
  return absl::InvalidArgumentError(absl::StrCat("unknown key \"", key, "\"; expected record, pin or ban"));
}

// Like std::getline, but of a line that is too long it reads one byte more than a line may have, and stops.
bool ReadLine(std::istream& in, std::string* line) {
  char piece[1 << 14];
  line->clear();
  while (in.good() && line->size() <= kMostLineBytes) {
    in.getline(piece, sizeof(piece));
    const auto got = static_cast<size_t>(in.gcount());
    const bool is_end = in.good();  // and the newline is counted
    line->append(piece, is_end ? got - 1 : got);
    if (is_end || in.eof() || in.bad()) return is_end || got > 0;
    in.clear();  // the piece is full
  }
  return !line->empty();
}

// Errors of the line get its place; those of the database keep theirs.
absl::Status AtLine(const absl::Status& status, const std::string& origin, int64_t line) {
  if (!absl::IsInvalidArgument(status) && !absl::IsFailedPrecondition(status)) return status;
  return absl::Status(status.code(), absl::StrCat(origin, ":", line, ": ", std::string(status.message())));
}

}  // namespace

absl::StatusOr<int64_t> ExportJsonLines(const TuningLog& log, const RecordFilter& filter, std::ostream& out) {
  out << ordered_json{{kFormatKey, kFormatVersion}} << "\n";
  int64_t count = 0;
  MYCC_RETURN_IF_ERROR(log.ForEach(filter, [&](const StoredRecord& stored) {
    v1::Record record = stored.record;
    record.set_trace(StoredTrace(record.trace()));
    out << ordered_json{{"record", MessageToJson(record)}} << "\n";
    if (stored.override_by.has_value() && stored.override_by->record_id == stored.id) {
      out << ordered_json{{OverrideKey(stored.override_by->kind),
                           ordered_json{{"trial", stored.record.trial()},
                                        {"reason", stored.override_by->reason},
                                        {"made_unix_micros", stored.override_by->made_unix_micros}}}}
          << "\n";
    }
    ++count;
    return out.good() ? absl::OkStatus() : absl::ResourceExhaustedError("cannot write the export");
  }));
  out.flush();
  if (!out.good()) return absl::ResourceExhaustedError("cannot write the export");
  return count;
}

absl::StatusOr<TransferCounts> ImportJsonLines(std::istream& in, const std::string& origin, TuningLog* log,
                                               const CheckTarget& check_target) {
  MutexLock lock(log->database()->mutex());
  MYCC_ASSIGN_OR_RETURN(Importer importer, Importer::Begin(log));
  std::string line;
  int64_t number = 0;
  bool empty = true;
  while (ReadLine(in, &line)) {
    ++number;
    if (number == 1) DropByteOrderMark(&line);
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (line.size() > kMostLineBytes) {
      return AtLine(absl::InvalidArgumentError("the line is too long; expected at most 64 MiB"), origin,
                    number);
    }
    MYCC_RETURN_IF_ERROR(AtLine(ImportLine(line, empty, check_target, &importer), origin, number));
    empty = false;
  }
  if (in.bad()) return absl::DataLossError(absl::StrCat(origin, ": cannot be read"));
  if (empty)
    return absl::InvalidArgumentError(absl::StrCat(origin, ": is empty; expected an exported tuning log"));
  return importer.Commit();
}

absl::StatusOr<TransferCounts> MergeLog(const TuningLog& from, TuningLog* into) {
  MYCC_CHECK(&from != into) << "a log cannot be merged into itself";
  MutexLock lock(into->database()->mutex());
  MYCC_ASSIGN_OR_RETURN(Importer importer, Importer::Begin(into));
  MYCC_RETURN_IF_ERROR(from.ForEach({}, [&](const StoredRecord& stored) -> absl::Status {
    MYCC_RETURN_IF_ERROR(importer.AddRecord(stored.record));
    if (!stored.override_by.has_value() || stored.override_by->record_id != stored.id)
      return absl::OkStatus();
    return importer.AddOverride(stored.record.trial(), *stored.override_by);
  }));
  return importer.Commit();
}

}  // namespace mycc
