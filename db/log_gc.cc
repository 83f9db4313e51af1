#include "db/log_gc.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "db/foreign_table.h"

namespace mycc {
namespace {

constexpr int64_t kMicrosPerSecond = 1000000;

constexpr char kDeleteJobs[] = "DELETE FROM jobs WHERE state != 1 AND updated < ?1";
constexpr char kDeleteModels[] = R"sql(
DELETE FROM models WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE state IN (1, 3))
  AND EXISTS (SELECT 1 FROM models newer WHERE newer.kind = models.kind
              AND (newer.created, newer.rowid) > (models.created, models.rowid)))sql";
// Nothing else refers to a record.
constexpr char kIsFree[] = R"sql(
  AND NOT EXISTS (SELECT 1 FROM trials WHERE trials.record = records.id)
  AND NOT EXISTS (SELECT 1 FROM overrides o WHERE o.key = records.key AND o.trace_hash = records.trace_hash))sql";
// A failure that speaks against a verified time stays, and so does the time: forgetting either would bring
// the time back to life if a log that holds the time is merged again.
constexpr char kDeleteFailures[] = R"sql(
DELETE FROM records WHERE recorded < ?1 AND (status != 1 OR verified = 0 OR superseded = 1)
  AND NOT (status IN (1, 4, 6) AND EXISTS (SELECT 1 FROM records r WHERE r.key = records.key
           AND r.trace_hash = records.trace_hash AND (r.status = 1) != (records.status = 1)
           AND r.status IN (1, 4, 6))))sql";
// Records behind the best, and superseded times of traces that have none among the best, unless a failure
// speaks against them.
constexpr char kBeyondBest[] = R"sql(
  WITH ranked AS MATERIALIZED (
    SELECT id, key, trace_hash, row_number() OVER (
      PARTITION BY key, protocol, timer_version
      ORDER BY proven DESC, coalesce(rank_seconds, seconds), recorded, trial) AS place
    FROM records WHERE status = 1 AND verified = 1 AND superseded = 0)
  SELECT id FROM ranked WHERE place > ?1
  UNION ALL SELECT id FROM records old WHERE status = 1 AND verified = 1 AND superseded = 1
    AND NOT EXISTS (SELECT 1 FROM ranked r WHERE r.key = old.key AND r.trace_hash = old.trace_hash AND r.place <= ?1)
    AND NOT EXISTS (SELECT 1 FROM records f WHERE f.key = old.key AND f.trace_hash = old.trace_hash AND f.status IN (4, 6)))sql";
// Trials of jobs that are done or have failed, and that have a summary.
constexpr char kForgetTrials[] = R"sql(
UPDATE trials SET record = NULL
WHERE task IN (SELECT t.id FROM tasks t JOIN jobs j ON j.id = t.job WHERE j.state IN (2, 4) AND j.summary != x'')
  AND record IN )sql";
constexpr char kIsInUse[] = " AND EXISTS (SELECT 1 FROM trials WHERE trials.record = records.id)";
constexpr char kDeleteKeys[] = R"sql(
DELETE FROM keys WHERE NOT EXISTS (SELECT 1 FROM records WHERE records.key = keys.id)
  AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.key = keys.id)
  AND NOT EXISTS (SELECT 1 FROM foreign_records WHERE foreign_records.key = keys.id))sql";
constexpr char kDeleteWorkloads[] = "DELETE FROM workloads WHERE id NOT IN (SELECT workload FROM keys)";
constexpr char kDeleteTargets[] = "DELETE FROM targets WHERE id NOT IN (SELECT target FROM keys)";

absl::Status Delete(Database* database, const std::string& sql, std::vector<SqlValue> values,
                    int64_t* count) {
  MYCC_RETURN_IF_ERROR(database->Run(sql, std::move(values)));
  *count += database->changes();
  return absl::OkStatus();
}

absl::Status ForgetBeyondBest(Database* database, int64_t keep, GcCounts* counts) {
  const std::string beyond = absl::StrCat("(", kBeyondBest, ")");
  MYCC_RETURN_IF_ERROR(database->Run(kForgetTrials + beyond, {keep}));
  MYCC_RETURN_IF_ERROR(Delete(database, absl::StrCat("DELETE FROM records WHERE id IN ", beyond, kIsFree),
                              {keep}, &counts->records));
  MYCC_ASSIGN_OR_RETURN(
      counts->records_in_use,
      database->ReadInt(absl::StrCat("SELECT count(*) FROM records WHERE id IN ", beyond, kIsInUse), {keep}));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GcCounts> CollectGarbage(TuningLog* log, const GcPolicy& policy) {
  Database* database = log->database();
  MutexLock lock(database->mutex());
  GcCounts counts;
  {
    MYCC_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database));
    const auto before = [&](int64_t seconds) { return log->now() - seconds * kMicrosPerSecond; };
    if (policy.ended_jobs_after_seconds != GcPolicy::kNever) {
      MYCC_RETURN_IF_ERROR(
          Delete(database, kDeleteJobs, {before(policy.ended_jobs_after_seconds)}, &counts.jobs));
    }
    MYCC_RETURN_IF_ERROR(Delete(database, kDeleteModels, {}, &counts.models));
    if (policy.keep_best > 0) MYCC_RETURN_IF_ERROR(ForgetBeyondBest(database, policy.keep_best, &counts));
    if (policy.failures_after_seconds != GcPolicy::kNever) {
      MYCC_RETURN_IF_ERROR(Delete(database, std::string(kDeleteFailures) + kIsFree,
                                  {before(policy.failures_after_seconds)}, &counts.records));
    }
    MYCC_ASSIGN_OR_RETURN(counts.foreign, ForgetMeasuredForeign(database));
    MYCC_RETURN_IF_ERROR(Delete(database, kDeleteKeys, {}, &counts.keys));
    MYCC_RETURN_IF_ERROR(database->Run(kDeleteWorkloads));
    MYCC_RETURN_IF_ERROR(database->Run(kDeleteTargets));
    if (policy.dry_run) return counts;  // rolls back
    MYCC_RETURN_IF_ERROR(transaction.Commit());
  }
  database->Run("VACUUM").IgnoreError();  // needs the log for itself and space for a copy; next time, then
  return counts;
}

}  // namespace mycc
