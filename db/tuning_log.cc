// SQL for ranking and look-up. Every public call takes the database's mutex.
#include "db/tuning_log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/output_file.h"
#include "base/sha256.h"
#include "base/status.h"
#include "codegen/schedule/trace_names.h"
#include "db/override_table.h"
#include "proto/names.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

constexpr int kPageRecords = 256;

// Walks the index records_by_rank from its best end; bans are looked up by their key.
constexpr char kByRank[] = R"sql(
WHERE r.key = ?1 AND r.protocol = ?2 AND r.status = 1 AND r.verified = 1 AND r.superseded = 0 AND o.kind IS NOT 2
  AND r.proven >= ?4
ORDER BY r.timer_version DESC, coalesce(r.rank_seconds, r.seconds), r.recorded, r.trial LIMIT ?3)sql";
// A pin holds whatever the protocol, preferring the one asked for, but not for a trace that was found wrong
// since. A pinned record was proven when it was pinned. The sign + keeps a condition from the choice of an
// index: records_by_trace finds the few records of one trace.
constexpr char kPinned[] = R"sql(
WHERE r.key = ?1 AND r.trace_hash = (SELECT trace_hash FROM overrides WHERE key = ?1 AND kind = 1)
  AND +r.status = 1 AND r.verified = 1 AND r.superseded = 0
ORDER BY r.protocol = ?2 DESC, r.timer_version DESC, r.recorded DESC, r.trial LIMIT 1)sql";
// The times of a job that records of later or earlier final rounds have superseded since, the fastest first.
// A record that ranks by a round keeps its place however much slower the moment of that round was. CROSS JOIN
// makes SQLite begin with the records of rounds, which are few.
constexpr char kFasterBeside[] = R"sql(
WHERE r.id IN (
  SELECT old.id FROM records f CROSS JOIN records old ON old.key = f.key AND old.trace_hash = f.trace_hash
  WHERE f.key = ?1 AND f.rank_seconds IS NOT NULL AND +f.status = 1 AND f.verified = 1 AND f.superseded = 0
    AND f.proven = 1 AND +old.status = 1 AND old.verified = 1 AND +old.job = ?2 AND old.protocol = ?3
    AND old.timer_version = ?4 AND old.seconds < ?5)
  AND o.kind IS NOT 2
ORDER BY r.seconds, r.id)sql";
constexpr char kValid[] = R"sql(
WHERE r.key = ?1 AND r.trace_hash = ?2 AND +r.status = 1 AND r.verified = 1 AND r.superseded = 0
  AND r.protocol = ?3 AND r.timer_version = ?4)sql";
constexpr char kDefaultOrigin[] = "/default";  // Provenance.strategy ends with a candidate's origin
constexpr char kKeysOfWorkload[] =
    "SELECT k.id FROM workloads w JOIN keys k ON k.workload = w.id WHERE w.hash = ?1 ORDER BY k.id";
constexpr char kKeysOfShapes[] =
    "SELECT k.id FROM workloads w JOIN keys k ON k.workload = w.id WHERE w.shape_erased_hash = ?1 ORDER BY "
    "k.id";

constexpr char kWorkloadsOfShapes[] = R"sql(
SELECT w.hash, w.text FROM workloads w JOIN keys k ON k.workload = w.id JOIN targets t ON t.id = k.target
WHERE w.shape_erased_hash = ?1 AND t.text = ?2 ORDER BY k.id)sql";

// Traces whose results say nothing of the candidate are not counted.
std::string CountTraces() {
  std::vector<int> silent;
  for (int status = v1::MeasureStatus_MIN; status <= v1::MeasureStatus_MAX; ++status) {
    if (v1::MeasureStatus_IsValid(status) && IsInfrastructureFailure(static_cast<v1::MeasureStatus>(status)))
      silent.push_back(status);
  }
  return absl::StrCat(
      "SELECT count(*) FROM (SELECT DISTINCT trace_hash FROM records WHERE key = ?1 AND protocol = ?2 AND "
      "status"
      " NOT IN (",
      absl::StrJoin(silent, ", "), ") LIMIT ?3)");
}

// The least and the greatest id of a page that is not empty.
std::pair<int64_t, int64_t> IdsOf(const std::vector<StoredRecord>& records, const DamagedRecords& damaged) {
  std::set<int64_t> ids;
  for (const StoredRecord& record : records) ids.insert(record.id);
  for (const auto& [id, why] : damaged) ids.insert(id);
  return {*ids.begin(), *ids.rbegin()};
}

absl::Status CheckWritable(const Database& database) {
  if (!database.read_only()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(database.path(), ": the log is open for reading only"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TuningLog>> TuningLog::Open(const std::string& path, OpenMode mode,
                                                           Clock clock) {
  MYCC_ASSIGN_OR_RETURN(LogFile file, LogFile::Open(path, mode));
  return std::unique_ptr<TuningLog>(new TuningLog(std::move(file), std::move(clock)));
}

absl::StatusOr<std::vector<AppendedRecord>> TuningLog::Append(absl::Span<const v1::Record> records) {
  MYCC_RETURN_IF_ERROR(CheckWritable(*database()));
  MutexLock lock(database()->mutex());
  MYCC_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database()));
  std::vector<AppendedRecord> appended;
  for (const v1::Record& record : records) {
    MYCC_ASSIGN_OR_RETURN(const AppendedRecord one, InsertRecord(database(), record, now()));
    appended.push_back(one);
  }
  MYCC_RETURN_IF_ERROR(transaction.Commit());
  return appended;
}

absl::StatusOr<std::vector<StoredRecord>> TuningLog::Read(const std::string& where,
                                                          std::vector<SqlValue> values,
                                                          DamagedRecords* damaged) const {
  MYCC_ASSIGN_OR_RETURN(
      std::vector<StoredRecord> records,
      ReadRecords(database(), SelectRecords() + where, std::move(values), on_damage_ ? damaged : nullptr));
  for (const auto& [id, why] : *damaged) {
    if (told_.insert(id).second) on_damage_(id, why);
  }
  return records;
}

absl::StatusOr<std::optional<StoredRecord>> TuningLog::FasterDefault(int64_t key,
                                                                     const StoredRecord& best) const {
  const v1::Timing& timing = best.record.result().timing();
  if (timing.rank_seconds() > 0) return std::nullopt;  // the round has compared them
  DamagedRecords damaged;
  MYCC_ASSIGN_OR_RETURN(std::vector<StoredRecord> faster,
                        Read(kFasterBeside,
                             {key, best.record.provenance().job(), int64_t{timing.protocol()},
                              int64_t{timing.timer_version()}, timing.seconds()},
                             &damaged));
  for (StoredRecord& record : faster) {
    if (!absl::EndsWith(record.record.provenance().strategy(), kDefaultOrigin)) continue;
    // A time of other code says nothing about the code that was measured last.
    MYCC_ASSIGN_OR_RETURN(const std::optional<StoredRecord> valid, ReadValid(key, record.record));
    if (valid && valid->record.result().code_digest() == record.record.result().code_digest())
      return std::move(record);
  }
  return std::nullopt;
}

absl::Status TuningLog::PutFasterDefaultFirst(int64_t key, std::vector<StoredRecord>* best) const {
  MYCC_ASSIGN_OR_RETURN(std::optional<StoredRecord> faster, FasterDefault(key, best->front()));
  if (!faster) return absl::OkStatus();
  const size_t size = best->size();
  std::erase_if(
      *best, [&faster](const StoredRecord& other) { return other.record.trace() == faster->record.trace(); });
  best->insert(best->begin(), *std::move(faster));
  best->resize(std::min(best->size(), size));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<StoredRecord>> TuningLog::ByRank(int64_t key, v1::TimingProtocol protocol, int k,
                                                            bool only_proven) const {
  DamagedRecords damaged;
  while (true) {
    const size_t passed_over = damaged.size();
    const auto limit = static_cast<int64_t>(passed_over) + k;
    MYCC_ASSIGN_OR_RETURN(std::vector<StoredRecord> ranked,
                          Read(kByRank, {key, int64_t{protocol}, limit, int64_t{only_proven}}, &damaged));
    if (damaged.size() == passed_over) return ranked;
  }
}

absl::StatusOr<std::vector<StoredRecord>> TuningLog::Ranked(int64_t key, v1::TimingProtocol protocol, int k,
                                                            bool only_proven) const {
  DamagedRecords damaged;
  MYCC_ASSIGN_OR_RETURN(std::vector<StoredRecord> best, Read(kPinned, {key, int64_t{protocol}}, &damaged));
  if (static_cast<int>(best.size()) >= k) return best;
  MYCC_ASSIGN_OR_RETURN(std::vector<StoredRecord> ranked, ByRank(key, protocol, k, only_proven));
  const std::string pinned_trace = best.empty() ? "" : best[0].record.trace();
  const bool has_pin = !best.empty();
  const uint32_t newest_timer = ranked.empty() ? 0 : ranked[0].record.result().timing().timer_version();
  for (StoredRecord& next : ranked) {
    if (next.record.result().timing().timer_version() != newest_timer || static_cast<int>(best.size()) == k)
      break;
    if (!has_pin || next.record.trace() != pinned_trace) best.push_back(std::move(next));
  }
  if (only_proven && !has_pin && !best.empty()) MYCC_RETURN_IF_ERROR(PutFasterDefaultFirst(key, &best));
  return best;
}

absl::StatusOr<StoredRecord> TuningLog::Best(const LogKey& key, v1::TimingProtocol protocol) const {
  MYCC_ASSIGN_OR_RETURN(std::vector<StoredRecord> best, TopK(key, protocol, 1));
  if (best.empty())
    return absl::NotFoundError(
        absl::StrCat(path(), ": no verified and proven record for this workload and target"));
  return std::move(best[0]);
}

absl::StatusOr<std::vector<StoredRecord>> TuningLog::TopK(const LogKey& key, v1::TimingProtocol protocol,
                                                          int k) const {
  return RankedOf(key, protocol, k, /*only_proven=*/true);
}

absl::StatusOr<std::vector<StoredRecord>> TuningLog::Leaders(const LogKey& key, v1::TimingProtocol protocol,
                                                             int k) const {
  return RankedOf(key, protocol, k, /*only_proven=*/false);
}

absl::StatusOr<std::vector<StoredRecord>> TuningLog::RankedOf(const LogKey& key, v1::TimingProtocol protocol,
                                                              int k, bool only_proven) const {
  MutexLock lock(database()->mutex());
  absl::StatusOr<int64_t> id = FindKey(database(), key.workload_hash, key.target);
  if (absl::IsNotFound(id.status()) || k <= 0) return std::vector<StoredRecord>();
  MYCC_RETURN_IF_ERROR(id.status());
  return Ranked(*id, protocol, k, only_proven);
}

absl::StatusOr<std::vector<StoredRecord>> TuningLog::BestOfKeys(const std::string& select_keys,
                                                                const std::string& hash,
                                                                v1::TimingProtocol protocol) const {
  MutexLock lock(database()->mutex());
  MYCC_ASSIGN_OR_RETURN(Query keys, database()->Prepare(select_keys, {hash}));
  std::vector<StoredRecord> best;
  while (true) {
    MYCC_ASSIGN_OR_RETURN(const bool row, keys.Next());
    if (!row) return best;
    MYCC_ASSIGN_OR_RETURN(std::vector<StoredRecord> ranked,
                          Ranked(keys.Int(0), protocol, 1, /*only_proven=*/true));
    if (!ranked.empty()) best.push_back(std::move(ranked[0]));
  }
}

absl::StatusOr<std::vector<StoredRecord>> TuningLog::BestOfTargets(const std::string& workload_hash,
                                                                   v1::TimingProtocol protocol) const {
  return BestOfKeys(kKeysOfWorkload, workload_hash, protocol);
}

absl::StatusOr<std::vector<StoredRecord>> TuningLog::BestOfShapes(const std::string& shape_erased_hash,
                                                                  v1::TimingProtocol protocol) const {
  return BestOfKeys(kKeysOfShapes, shape_erased_hash, protocol);
}

absl::StatusOr<std::vector<KnownWorkload>> TuningLog::WorkloadsOfShapes(const std::string& shape_erased_hash,
                                                                        const std::string& target) const {
  MutexLock lock(database()->mutex());
  MYCC_ASSIGN_OR_RETURN(Query row, database()->Prepare(kWorkloadsOfShapes, {shape_erased_hash, target}));
  std::vector<KnownWorkload> workloads;
  while (true) {
    MYCC_ASSIGN_OR_RETURN(const bool found, row.Next());
    if (!found) return workloads;
    workloads.push_back({row.Text(0), row.Text(1)});
  }
}

absl::StatusOr<int64_t> TuningLog::CountMeasured(const LogKey& key, v1::TimingProtocol protocol,
                                                 int64_t limit) const {
  MutexLock lock(database()->mutex());
  const absl::StatusOr<int64_t> id = FindKey(database(), key.workload_hash, key.target);
  if (absl::IsNotFound(id.status())) return 0;
  MYCC_RETURN_IF_ERROR(id.status());
  return database()->ReadInt(CountTraces(), {*id, int64_t{protocol}, limit});
}

absl::StatusOr<std::optional<StoredRecord>> TuningLog::ValidRecordOf(const v1::Record& record) const {
  MutexLock lock(database()->mutex());
  MYCC_ASSIGN_OR_RETURN(const int64_t key, FindKey(database(), record.workload_hash(), record.target()));
  return ReadValid(key, record);
}

absl::StatusOr<std::optional<StoredRecord>> TuningLog::ReadValid(int64_t key,
                                                                 const v1::Record& record) const {
  const v1::Timing& timing = record.result().timing();
  DamagedRecords damaged;
  MYCC_ASSIGN_OR_RETURN(std::vector<StoredRecord> found,
                        Read(kValid,
                             {key, Sha256Hex(StoredTrace(record.trace())), int64_t{timing.protocol()},
                              int64_t{timing.timer_version()}},
                             &damaged));
  if (found.empty()) return std::nullopt;
  return std::move(found[0]);
}

absl::StatusOr<StoredRecord> TuningLog::Get(int64_t id) const {
  MutexLock lock(database()->mutex());
  MYCC_ASSIGN_OR_RETURN(std::vector<StoredRecord> found,
                        ReadRecords(database(), SelectRecords() + "WHERE r.id = ?1", {id}));
  if (found.empty()) return absl::NotFoundError(absl::StrCat(path(), ": no record ", id));
  return std::move(found[0]);
}

absl::StatusOr<StoredRecord> TuningLog::Find(const std::string& trial) const {
  MutexLock lock(database()->mutex());
  MYCC_ASSIGN_OR_RETURN(std::vector<StoredRecord> found,
                        ReadRecords(database(), SelectRecords() + "WHERE r.trial = ?1", {trial}));
  if (found.empty()) return absl::NotFoundError(absl::StrCat(path(), ": no record of trial ", trial));
  return std::move(found[0]);
}

absl::StatusOr<std::vector<StoredRecord>> TuningLog::List(const RecordFilter& filter) const {
  DamagedRecords damaged;
  return ReadPage(filter, &damaged);
}

absl::StatusOr<std::vector<StoredRecord>> TuningLog::ReadPage(const RecordFilter& filter,
                                                              DamagedRecords* damaged) const {
  FilterSql where = ToSql(filter);
  MutexLock lock(database()->mutex());
  return Read(where.sql, std::move(where.values), damaged);
}

absl::Status TuningLog::ForEach(const RecordFilter& filter,
                                const std::function<absl::Status(const StoredRecord&)>& visit) const {
  RecordFilter page = filter;
  int64_t left = filter.limit > 0 ? filter.limit : INT64_MAX;
  while (left > 0) {
    page.limit = std::min<int64_t>(left, kPageRecords);
    DamagedRecords damaged;
    MYCC_ASSIGN_OR_RETURN(const std::vector<StoredRecord> records, ReadPage(page, &damaged));
    for (const StoredRecord& record : records) MYCC_RETURN_IF_ERROR(visit(record));
    if (static_cast<int64_t>(records.size() + damaged.size()) < page.limit) return absl::OkStatus();
    left -= page.limit;
    const auto [first, last] = IdsOf(records, damaged);
    if (filter.newest_first) {
      page.max_id = first - 1;
      if (page.max_id == 0) return absl::OkStatus();
    } else {
      page.min_id = last + 1;
    }
  }
  return absl::OkStatus();
}

absl::Status TuningLog::SetOverride(int64_t record_id, OverrideKind kind, const std::string& reason) {
  MYCC_RETURN_IF_ERROR(CheckWritable(*database()));
  MutexLock lock(database()->mutex());
  MYCC_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database()));
  MYCC_RETURN_IF_ERROR(mycc::SetOverride(database(), record_id, {kind, ToUtf8(reason), now(), record_id}));
  return transaction.Commit();
}

absl::Status TuningLog::ClearOverride(int64_t record_id, OverrideKind kind) {
  MYCC_RETURN_IF_ERROR(CheckWritable(*database()));
  MutexLock lock(database()->mutex());
  return mycc::ClearOverride(database(), record_id, kind);
}

absl::Status TuningLog::TryWrite() {
  MYCC_RETURN_IF_ERROR(CheckWritable(*database()));
  MutexLock lock(database()->mutex());
  MYCC_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database()));
  // SQLite leaves out a row that is the same as before, and writes this number always.
  MYCC_ASSIGN_OR_RETURN(const int64_t version, database()->ReadInt("PRAGMA user_version"));
  MYCC_RETURN_IF_ERROR(database()->Execute(absl::StrCat("PRAGMA user_version = ", version)));
  return transaction.Commit();
}

absl::Status TuningLog::WriteTrouble() const {
  MutexLock lock(database()->mutex());
  return database()->write_trouble();
}

absl::Status TuningLog::Backup(const std::string& path) const {
  struct stat info;
  if (lstat(path.c_str(), &info) == 0) {
    return absl::AlreadyExistsError(absl::StrCat(path, ": exists already; a backup is a new file"));
  }
  const std::string partial = absl::StrCat(path, ".partial-", getpid());
  absl::Status status;
  {
    MutexLock lock(database()->mutex());
    status = database()->Run("VACUUM INTO ?1", {partial});
  }
  if (!status.ok())
    status = absl::Status(status.code(), absl::StrCat(path, ": cannot be written: ", status.message()));
  if (status.ok()) status = SyncFile(partial);
  // link, unlike rename, never replaces a file that appeared meanwhile.
  if (status.ok() && link(partial.c_str(), path.c_str()) != 0) {
    status = absl::AlreadyExistsError(absl::StrCat(path, ": cannot be made; it may exist already"));
  }
  unlink(partial.c_str());
  return status;
}

}  // namespace mycc
