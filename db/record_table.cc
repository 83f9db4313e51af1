#include "db/record_table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status.h"
#include "codegen/schedule/trace_names.h"
#include "db/namesake.h"
#include "db/precedence.h"
#include "db/record_check.h"

namespace mycc {
namespace {

// A log's clock is never behind a stamp that it gave or took in.
constexpr char kTakeStamp[] = "UPDATE clock SET stamp = max(stamp + 1, ?1) RETURNING stamp";
constexpr char kRaiseStamp[] = "UPDATE clock SET stamp = max(stamp, ?1) RETURNING ?1";

constexpr char kInsert[] = R"sql(
INSERT INTO records (trial, key, trace, trace_hash, status, verified, superseded, protocol, timer_version, seconds, finished,
                     recorded, job, worker, detail, rank_seconds, proven)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16))sql";

absl::StatusOr<int64_t> EnsureWorkload(Database* database, const KeyText& key) {
  MYCC_ASSIGN_OR_RETURN(Query found,
                        database->Prepare("SELECT id, text, shape_erased_hash FROM workloads WHERE hash = ?1",
                                          {key.workload_hash}));
  MYCC_ASSIGN_OR_RETURN(const bool exists, found.Next());
  if (exists) {
    if (found.Text(1) == key.workload && found.Text(2) == key.shape_erased_hash) return found.Int(0);
    return absl::FailedPreconditionError(absl::StrCat(database->path(), ": workload hash ", key.workload_hash,
                                                      " already stands for another workload in this log"));
  }
  MYCC_RETURN_IF_ERROR(
      database->Run("INSERT INTO workloads (hash, shape_erased_hash, name, text) VALUES (?1, ?2, ?3, ?4)",
                    {key.workload_hash, key.shape_erased_hash, key.workload_name, key.workload}));
  return database->last_insert_id();
}

absl::StatusOr<int64_t> EnsureTarget(Database* database, const std::string& text) {
  MYCC_RETURN_IF_ERROR(
      database->Run("INSERT INTO targets (text) VALUES (?1) ON CONFLICT DO NOTHING", {text}));
  return database->ReadInt("SELECT id FROM targets WHERE text = ?1", {text});
}

}  // namespace

KeyText KeyTextOf(const v1::Record& record) {
  return {record.workload(), record.workload_hash(), record.shape_erased_hash(), record.workload_name(),
          record.target()};
}

v1::Record DetailOf(v1::Record record) {
  record.clear_trial();
  record.clear_workload();
  record.clear_workload_hash();
  record.clear_shape_erased_hash();
  record.clear_target();
  record.clear_trace();
  return record;
}

absl::StatusOr<int64_t> EnsureKey(Database* database, const KeyText& key) {
  MYCC_ASSIGN_OR_RETURN(const int64_t workload, EnsureWorkload(database, key));
  MYCC_ASSIGN_OR_RETURN(const int64_t target, EnsureTarget(database, key.target));
  MYCC_RETURN_IF_ERROR(database->Run(
      "INSERT INTO keys (workload, target) VALUES (?1, ?2) ON CONFLICT DO NOTHING", {workload, target}));
  return database->ReadInt("SELECT id FROM keys WHERE workload = ?1 AND target = ?2", {workload, target});
}

absl::StatusOr<int64_t> FindKey(Database* database, const std::string& workload_hash,
                                const std::string& target) {
  return database->ReadInt(
      "SELECT k.id FROM workloads w JOIN keys k ON k.workload = w.id JOIN targets t ON t.id = k.target "
      "WHERE w.hash = ?1 AND t.text = ?2",
      {workload_hash, target});
}

absl::StatusOr<AppendedRecord> InsertRecord(Database* database, const v1::Record& record,
                                            int64_t now_unix_micros) {
  MYCC_RETURN_IF_ERROR(CheckRecord(record));
  MYCC_ASSIGN_OR_RETURN(const PlaceOfRecord place, FindPlace(database, record));
  if (place.known_id != 0) return AppendedRecord{.id = place.known_id};

  MYCC_ASSIGN_OR_RETURN(const int64_t key, EnsureKey(database, KeyTextOf(record)));
  MYCC_ASSIGN_OR_RETURN(AppendedRecord appended,
                        InsertNamed(database, {place.trial, key, StoredTrace(record.trace())},
                                    DetailOf(record), now_unix_micros));
  appended.has_namesakes = place.has_namesakes;
  return appended;
}

absl::StatusOr<AppendedRecord> InsertNamed(Database* database, const RecordPlace& place, v1::Record detail,
                                           int64_t now_unix_micros) {
  const int64_t given = detail.recorded_unix_micros();
  MYCC_ASSIGN_OR_RETURN(const int64_t recorded, database->ReadInt(given == 0 ? kTakeStamp : kRaiseStamp,
                                                                  {given == 0 ? now_unix_micros : given}));
  detail.set_recorded_unix_micros(recorded);
  const v1::MeasureResult& result = detail.result();
  const int64_t finished = result.finished_unix_micros() != 0 ? result.finished_unix_micros() : recorded;
  const std::string trace_hash = Sha256Hex(place.stored_trace);
  const bool ok = result.status() == v1::MEASURE_STATUS_OK;
  const bool has_rank = ok && result.timing().rank_seconds() > 0;
  MYCC_RETURN_IF_ERROR(database->Run(
      kInsert,
      {place.trial, place.key, place.stored_trace, trace_hash, int64_t{result.status()},
       int64_t{result.verification().passed()}, int64_t{result.timing().protocol()},
       int64_t{result.timing().timer_version()}, ok ? SqlValue(result.timing().seconds()) : SqlValue(),
       finished, recorded, detail.provenance().job(), result.device().worker(),
       Blob{detail.SerializeAsString()}, has_rank ? SqlValue(result.timing().rank_seconds()) : SqlValue(),
       int64_t{IsServable(detail)}}));
  const AppendedRecord appended{.id = database->last_insert_id(), .is_new = true};
  MYCC_RETURN_IF_ERROR(Supersede(database, place.key, trace_hash));
  return appended;
}

const std::string& SelectRecords() {
  static const std::string& select = *new std::string(
      "SELECT r.id, r.trial, w.text, w.hash, w.shape_erased_hash, t.text, r.trace, r.trace_hash, "
      "r.superseded, r.detail,"
      " o.kind, o.reason, o.made, o.record "
      "FROM records r JOIN keys k ON k.id = r.key JOIN workloads w ON w.id = k.workload JOIN targets t ON "
      "t.id = k.target"
      " LEFT JOIN overrides o ON o.key = r.key AND o.trace_hash = r.trace_hash ");
  return select;
}

absl::StatusOr<StoredRecord> ReadRecord(const Database& database, const Query& row) {
  StoredRecord stored;
  stored.id = row.Int(0);
  v1::Record& record = stored.record;
  // The trace's hash guards what will become code against damage that SQLite cannot see.
  if (!record.ParseFromString(row.Text(9)) || Sha256Hex(row.Text(6)) != row.Text(7)) {
    return absl::DataLossError(
        absl::StrCat(database.path(), ": record ", stored.id, " is damaged; restore the log from a backup"));
  }
  record.set_trial(row.Text(1));
  record.set_workload(row.Text(2));
  record.set_workload_hash(row.Text(3));
  record.set_shape_erased_hash(row.Text(4));
  record.set_target(row.Text(5));
  record.set_trace(CurrentTrace(row.Text(6)));
  stored.superseded = row.Int(8) != 0;
  if (!row.IsNull(10)) {
    stored.override_by =
        Override{static_cast<OverrideKind>(row.Int(10)), row.Text(11), row.Int(12), row.Int(13)};
  }
  return stored;
}

absl::StatusOr<std::vector<StoredRecord>> ReadRecords(Database* database, const std::string& sql,
                                                      std::vector<SqlValue> values, DamagedRecords* damaged) {
  MYCC_ASSIGN_OR_RETURN(Query query, database->Prepare(sql, std::move(values)));
  std::vector<StoredRecord> records;
  while (true) {
    MYCC_ASSIGN_OR_RETURN(const bool row, query.Next());
    if (!row) return records;
    absl::StatusOr<StoredRecord> record = ReadRecord(*database, query);
    if (record.ok()) {
      records.push_back(*std::move(record));
    } else if (damaged != nullptr && absl::IsDataLoss(record.status())) {
      damaged->emplace(query.Int(0), record.status());
    } else {
      return record.status();
    }
  }
}

}  // namespace mycc
