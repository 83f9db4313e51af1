#include "db/json_lines.h"

#include <istream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/file.h"
#include "base/status.h"
#include "db/foreign_table.h"
#include "db/json_record.h"
#include "db/override_table.h"
#include "db/record_pack.h"

namespace mycc {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kFormatVersion = 1;
constexpr char kFormatKey[] = "mycc_tuning_log";

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

  absl::Status AddForeign(const TuningLog& from) {
    MYCC_ASSIGN_OR_RETURN(counts_.foreign, MergeForeign(from, log_->database()));
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

absl::Status ImportRecord(const json& value, const CheckTarget& check_target, Importer* importer) {
  MYCC_ASSIGN_OR_RETURN(const v1::Record record, RecordFromJson(value, check_target));
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
  if (key == kPackKey) {
    return absl::InvalidArgumentError(
        "is a signed pack; expected --verify with the signer's public key, which keeps the records of others "
        "until "
        "they are measured here");
  }
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
    out << RecordLine(stored.record) << "\n";
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
  MYCC_RETURN_IF_ERROR(importer.AddForeign(from));
  return importer.Commit();
}

}  // namespace mycc
