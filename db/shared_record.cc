#include "db/shared_record.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status.h"
#include "codegen/schedule/trace_names.h"
#include "db/trial_table.h"
#include "proto/names.h"

namespace mycc {
namespace {

// Final rounds leave records beside those of trials.
constexpr char kOfTrace[] =
    "SELECT id FROM records WHERE key = ?1 AND trace_hash = ?2 AND protocol = ?3 AND rank_seconds IS NULL "
    "ORDER BY recorded DESC, id DESC";

absl::StatusOr<std::vector<int64_t>> IdsOfTrace(const TuningLog& log, const LogKey& key,
                                                v1::TimingProtocol protocol, const std::string& trace) {
  MutexLock lock(log.database()->mutex());
  const absl::StatusOr<int64_t> row = FindKey(log.database(), key.workload_hash, key.target);
  if (absl::IsNotFound(row.status())) return std::vector<int64_t>();
  MYCC_RETURN_IF_ERROR(row.status());
  MYCC_ASSIGN_OR_RETURN(Query query, log.database()->Prepare(
                                         kOfTrace, {*row, Sha256Hex(StoredTrace(trace)), int64_t{protocol}}));
  std::vector<int64_t> ids;
  while (true) {
    MYCC_ASSIGN_OR_RETURN(const bool found, query.Next());
    if (!found) return ids;
    ids.push_back(query.Int(0));
  }
}

}  // namespace

absl::StatusOr<std::optional<StoredRecord>> RecordOfJobs(const TuningLog& log, const LogKey& key,
                                                         v1::TimingProtocol protocol,
                                                         const std::string& trace,
                                                         const std::set<std::string>& jobs) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> ids, IdsOfTrace(log, key, protocol, trace));
  for (const int64_t id : ids) {
    absl::StatusOr<StoredRecord> stored = log.Get(id);
    if (!stored.ok()) continue;  // damaged
    const absl::StatusOr<TrialId> trial = ParseTrialName(stored->record.trial());
    const bool is_theirs = trial.ok() && jobs.contains(trial->job);
    if (is_theirs && !IsInfrastructureFailure(stored->record.result().status()))
      return std::optional<StoredRecord>(*std::move(stored));
  }
  return std::optional<StoredRecord>();
}

absl::Status FinishByRecordOf(TuningLog* log, const std::string& trial, const std::string& other) {
  Database* const database = log->database();
  MutexLock lock(database->mutex());
  MYCC_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database));
  MYCC_ASSIGN_OR_RETURN(const TrialRow row, FindTrial(database, trial));
  if (row.trial.state != TrialState::kQueued)
    return absl::FailedPreconditionError(absl::StrCat("trial ", trial, " is not queued"));
  MYCC_ASSIGN_OR_RETURN(const int64_t record,
                        database->ReadInt("SELECT id FROM records WHERE trial = ?1", {other}));
  MYCC_RETURN_IF_ERROR(database->Run("UPDATE trials SET state = ?2, record = ?3 WHERE id = ?1",
                                     {row.id, static_cast<int64_t>(TrialState::kFinished), record}));
  return transaction.Commit();
}

absl::StatusOr<StoredRecord> RecordThatFinished(const TuningLog& log, const std::string& trial) {
  absl::StatusOr<StoredRecord> own = log.Find(trial);
  if (!absl::IsNotFound(own.status())) return own;
  int64_t record = 0;
  {
    MutexLock lock(log.database()->mutex());
    MYCC_ASSIGN_OR_RETURN(const TrialRow row, FindTrial(log.database(), trial));
    record = row.trial.record_id;
  }
  if (record == 0) return own;
  return log.Get(record);
}

}  // namespace mycc
