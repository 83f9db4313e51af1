#include "db/foreign_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status.h"
#include "codegen/schedule/trace_names.h"
#include "db/record_check.h"

namespace mycc {
namespace {

constexpr int kPageForeign = 256;

// A foreign record `f` for whose trace this log has no result that says something of the candidate: losses of
// devices and workers (statuses 8 to 10) say nothing. A banned trace does not wait.
constexpr char kWaits[] = R"sql(
  (NOT EXISTS (SELECT 1 FROM records r WHERE r.key = f.key AND r.trace_hash = f.trace_hash
               AND r.protocol = f.protocol AND r.status NOT IN (8, 9, 10))
   AND NOT EXISTS (SELECT 1 FROM overrides o WHERE o.key = f.key AND o.trace_hash = f.trace_hash AND o.kind = 2)) )sql";

constexpr char kInsertForeign[] = R"sql(
INSERT INTO foreign_records (key, trial, trace, trace_hash, protocol, seconds, recorded, signer, taken, detail)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
ON CONFLICT (key, trace_hash, protocol, signer) DO UPDATE SET
  trial = excluded.trial, seconds = excluded.seconds, recorded = excluded.recorded, taken = excluded.taken,
  detail = excluded.detail
WHERE (excluded.recorded, excluded.trial) > (recorded, trial))sql";

// The columns of ReadForeign. The keys are `k`, workloads `w`, targets `t`, signers `s`.
std::string SelectForeign() {
  return absl::StrCat(
      "SELECT f.id, f.trial, w.text, w.hash, w.shape_erased_hash, t.text, f.trace, f.trace_hash, f.detail,"
      " s.key, s.name, f.taken, ",
      kWaits,
      "FROM foreign_records f JOIN keys k ON k.id = f.key JOIN workloads w ON w.id = k.workload"
      " JOIN targets t ON t.id = k.target JOIN signers s ON s.id = f.signer ");
}

absl::StatusOr<ForeignRecord> ReadForeign(const Database& database, const Query& row) {
  ForeignRecord foreign;
  foreign.id = row.Int(0);
  v1::Record& record = foreign.record;
  if (!record.ParseFromString(row.Text(8)) || Sha256Hex(row.Text(6)) != row.Text(7)) {
    return absl::DataLossError(absl::StrCat(database.path(), ": foreign record ", foreign.id,
                                            " is damaged; restore the log from a backup"));
  }
  record.set_trial(row.Text(1));
  record.set_workload(row.Text(2));
  record.set_workload_hash(row.Text(3));
  record.set_shape_erased_hash(row.Text(4));
  record.set_target(row.Text(5));
  record.set_trace(CurrentTrace(row.Text(6)));
  foreign.signer = {row.Text(9), row.Text(10)};
  foreign.taken_unix_micros = row.Int(11);
  foreign.waits = row.Int(12) != 0;
  return foreign;
}

// REQUIRES: the mutex.
absl::StatusOr<std::vector<ForeignRecord>> ReadAllForeign(Database* database, const std::string& sql,
                                                          std::vector<SqlValue> values) {
  MYCC_ASSIGN_OR_RETURN(Query row, database->Prepare(sql, std::move(values)));
  std::vector<ForeignRecord> records;
  while (true) {
    MYCC_ASSIGN_OR_RETURN(const bool found, row.Next());
    if (!found) return records;
    MYCC_ASSIGN_OR_RETURN(ForeignRecord record, ReadForeign(*database, row));
    records.push_back(std::move(record));
  }
}

// The parts of a filter that a foreign record has, as conditions over SelectForeign.
FilterSql ForeignSql(const RecordFilter& filter, int64_t after) {
  FilterSql out{.sql = "WHERE f.id > ?1", .values = {after}};
  const auto add = [&out](const char* condition, const auto& value) {
    out.values.emplace_back(value);
    absl::StrAppend(&out.sql, " AND ", condition, "?", out.values.size());
  };
  if (!filter.workload_hash.empty()) {
    add("w.hash >= ", filter.workload_hash);
    add("w.hash < ", filter.workload_hash + "g");
  }
  if (!filter.workload_name.empty()) add("w.name = ", filter.workload_name);
  if (!filter.target.empty()) add("t.text = ", filter.target);
  if (filter.protocol != v1::TIMING_PROTOCOL_UNSPECIFIED) add("f.protocol = ", int64_t{filter.protocol});
  return out;
}

}  // namespace

absl::StatusOr<int64_t> EnsureSigner(Database* database, const Signer& signer) {
  MYCC_RETURN_IF_ERROR(database->Run(
      "INSERT INTO signers (key, name) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET name = excluded.name",
      {signer.key_id, signer.name}));
  return database->ReadInt("SELECT id FROM signers WHERE key = ?1", {signer.key_id});
}

absl::StatusOr<bool> InsertForeign(Database* database, const v1::Record& record, int64_t signer,
                                   int64_t taken_unix_micros) {
  MYCC_RETURN_IF_ERROR(CheckRecord(record));
  MYCC_ASSIGN_OR_RETURN(const int64_t key, EnsureKey(database, KeyTextOf(record)));
  const v1::Timing& timing = record.result().timing();
  const std::string trace = StoredTrace(record.trace());
  MYCC_RETURN_IF_ERROR(
      database->Run(kInsertForeign, {key, record.trial(), trace, Sha256Hex(trace), int64_t{timing.protocol()},
                                     timing.seconds(), record.recorded_unix_micros(), signer,
                                     taken_unix_micros, Blob{DetailOf(record).SerializeAsString()}}));
  return database->changes() > 0;
}

absl::StatusOr<std::vector<ForeignRecord>> WaitingForeign(const TuningLog& log, const LogKey& key,
                                                          v1::TimingProtocol protocol, int k) {
  Database* const database = log.database();
  MutexLock lock(database->mutex());
  const absl::StatusOr<int64_t> id = FindKey(database, key.workload_hash, key.target);
  if (absl::IsNotFound(id.status()) || k <= 0) return std::vector<ForeignRecord>();
  MYCC_RETURN_IF_ERROR(id.status());
  // Several signers may have measured one trace.
  return ReadAllForeign(database,
                        absl::StrCat(SelectForeign(), "WHERE f.key = ?1 AND f.protocol = ?2 AND ", kWaits,
                                     "GROUP BY f.trace_hash HAVING f.seconds = min(f.seconds)"
                                     " ORDER BY f.seconds, f.trace_hash LIMIT ?3"),
                        {*id, int64_t{protocol}, int64_t{k}});
}

absl::StatusOr<int64_t> CountWaitingForeign(const TuningLog& log, const LogKey& key) {
  Database* const database = log.database();
  MutexLock lock(database->mutex());
  const absl::StatusOr<int64_t> id = FindKey(database, key.workload_hash, key.target);
  if (absl::IsNotFound(id.status())) return 0;
  MYCC_RETURN_IF_ERROR(id.status());
  return database->ReadInt(
      absl::StrCat("SELECT count(DISTINCT f.trace_hash) FROM foreign_records f WHERE f.key = ?1 AND ",
                   kWaits),
      {*id});
}

absl::StatusOr<std::vector<WaitingKey>> WaitingKeys(const TuningLog& log, v1::TimingProtocol protocol) {
  Database* const database = log.database();
  MutexLock lock(database->mutex());
  MYCC_ASSIGN_OR_RETURN(
      Query row,
      database->Prepare(
          absl::StrCat(
              "SELECT w.text, w.hash, w.shape_erased_hash, w.name, t.text, count(DISTINCT f.trace_hash)"
              " FROM foreign_records f JOIN keys k ON k.id = f.key JOIN workloads w ON w.id = k.workload"
              " JOIN targets t ON t.id = k.target WHERE f.protocol = ?1 AND ",
              kWaits, "GROUP BY f.key ORDER BY f.key"),
          {int64_t{protocol}}));
  std::vector<WaitingKey> keys;
  while (true) {
    MYCC_ASSIGN_OR_RETURN(const bool found, row.Next());
    if (!found) return keys;
    keys.push_back({{row.Text(0), row.Text(1), row.Text(2), row.Text(3), row.Text(4)}, row.Int(5)});
  }
}

absl::Status ForEachForeign(const TuningLog& log, const RecordFilter& filter,
                            const std::function<absl::Status(const ForeignRecord&)>& visit) {
  int64_t after = 0, left = filter.limit > 0 ? filter.limit : INT64_MAX;
  while (left > 0) {
    FilterSql where = ForeignSql(filter, after);
    const int64_t most = std::min<int64_t>(left, kPageForeign);
    std::vector<ForeignRecord> page;
    {
      MutexLock lock(log.database()->mutex());
      MYCC_ASSIGN_OR_RETURN(
          page, ReadAllForeign(log.database(),
                               absl::StrCat(SelectForeign(), where.sql, " ORDER BY f.id LIMIT ", most),
                               std::move(where.values)));
    }
    for (const ForeignRecord& record : page) MYCC_RETURN_IF_ERROR(visit(record));
    if (static_cast<int64_t>(page.size()) < most) return absl::OkStatus();
    after = page.back().id;
    left -= most;
  }
  return absl::OkStatus();
}

absl::StatusOr<ForeignCounts> CountForeign(const TuningLog& log) {
  MutexLock lock(log.database()->mutex());
  ForeignCounts counts;
  MYCC_ASSIGN_OR_RETURN(counts.records, log.database()->ReadInt("SELECT count(*) FROM foreign_records"));
  MYCC_ASSIGN_OR_RETURN(counts.waiting, log.database()->ReadInt(absl::StrCat(
                                            "SELECT count(*) FROM foreign_records f WHERE ", kWaits)));
  return counts;
}

absl::StatusOr<int64_t> MergeForeign(const TuningLog& from, Database* into) {
  int64_t added = 0;
  std::map<std::string, int64_t> signers;
  MYCC_RETURN_IF_ERROR(ForEachForeign(from, {}, [&](const ForeignRecord& foreign) -> absl::Status {
    const auto [signer, is_new] = signers.try_emplace(foreign.signer.key_id, 0);
    if (is_new) {
      MYCC_ASSIGN_OR_RETURN(signer->second, EnsureSigner(into, foreign.signer));
    }
    MYCC_ASSIGN_OR_RETURN(const bool was_added,
                          InsertForeign(into, foreign.record, signer->second, foreign.taken_unix_micros));
    added += was_added;
    return absl::OkStatus();
  }));
  return added;
}

absl::StatusOr<int64_t> ForgetMeasuredForeign(Database* database) {
  MYCC_RETURN_IF_ERROR(database->Run(
      absl::StrCat("DELETE FROM foreign_records WHERE id IN (SELECT f.id FROM foreign_records f WHERE NOT ",
                   kWaits, ")")));
  const int64_t forgotten = database->changes();
  MYCC_RETURN_IF_ERROR(
      database->Run("DELETE FROM signers WHERE id NOT IN (SELECT signer FROM foreign_records)"));
  return forgotten;
}

}  // namespace mycc
