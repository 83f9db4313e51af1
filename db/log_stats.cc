#include "db/log_stats.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "db/foreign_table.h"
#include "db/schema.h"

namespace mycc {
namespace {

// The seconds of a key's best record by one protocol.
std::string BestBy(v1::TimingProtocol protocol) {
  return absl::StrCat("(SELECT seconds FROM records r WHERE key = k.id AND protocol = ", protocol, R"sql(
    AND status = 1 AND verified = 1 AND superseded = 0 AND proven = 1
    AND NOT EXISTS (SELECT 1 FROM overrides o WHERE o.key = k.id AND o.trace_hash = r.trace_hash AND o.kind = 2)
  ORDER BY timer_version DESC, coalesce(rank_seconds, seconds) LIMIT 1))sql");
}

// One row for each key, counted and ranked by indexes; none for those that have foreign records alone.
std::string KeysQuery() {
  return absl::StrCat(R"sql(
SELECT w.name, w.hash, t.text,
  (SELECT count(*) FROM records WHERE key = k.id),
  (SELECT count(*) FROM records WHERE key = k.id AND protocol IN (1, 2, 3) AND status = 1 AND verified = 1 AND superseded = 0),
  )sql",
                      BestBy(v1::TIMING_PROTOCOL_WARM), ", ", BestBy(v1::TIMING_PROTOCOL_COLD), ", ",
                      BestBy(v1::TIMING_PROTOCOL_MODEL), R"sql(,
  (SELECT count(*) FROM overrides WHERE key = k.id AND kind = 1),
  (SELECT count(*) FROM overrides WHERE key = k.id AND kind = 2)
FROM keys k JOIN workloads w ON w.id = k.workload JOIN targets t ON t.id = k.target
WHERE EXISTS (SELECT 1 FROM records WHERE key = k.id) OR NOT EXISTS (SELECT 1 FROM foreign_records WHERE key = k.id)
ORDER BY k.id)sql");
}

absl::Status ReadCounts(Database* database, LogStats* stats) {
  const std::pair<const char*, int64_t*> counts[] = {
      {"SELECT count(*) FROM workloads", &stats->workloads},
      {"SELECT count(*) FROM targets", &stats->targets},
      {"SELECT count(*) FROM overrides WHERE kind = 1", &stats->pins},
      {"SELECT count(*) FROM overrides WHERE kind = 2", &stats->bans},
      {"SELECT count(*) FROM jobs", &stats->jobs},
      {"SELECT count(*) FROM models", &stats->models},
      {"SELECT count(*) FROM trials WHERE state IN (1, 2)", &stats->open_trials},
      {"SELECT coalesce((SELECT recorded FROM records ORDER BY id LIMIT 1), 0)", &stats->oldest_unix_micros},
      {"SELECT coalesce((SELECT recorded FROM records ORDER BY id DESC LIMIT 1), 0)",
       &stats->newest_unix_micros},
  };
  for (const auto& [sql, count] : counts) {
    MYCC_ASSIGN_OR_RETURN(*count, database->ReadInt(sql));
  }
  MYCC_ASSIGN_OR_RETURN(const int64_t pages, database->ReadInt("PRAGMA page_count"));
  MYCC_ASSIGN_OR_RETURN(const int64_t page_bytes, database->ReadInt("PRAGMA page_size"));
  stats->file_bytes = pages * page_bytes;
  MYCC_ASSIGN_OR_RETURN(stats->version, ReadVersion(database));
  return absl::OkStatus();
}

absl::Status ReadStatuses(Database* database, LogStats* stats) {
  MYCC_ASSIGN_OR_RETURN(Query row, database->Prepare("SELECT status, count(*) FROM records GROUP BY status"));
  while (true) {
    MYCC_ASSIGN_OR_RETURN(const bool found, row.Next());
    if (!found) return absl::OkStatus();
    stats->by_status[static_cast<int>(row.Int(0))] = row.Int(1);
    stats->records += row.Int(1);
  }
}

absl::Status ReadKeys(Database* database, LogStats* stats) {
  MYCC_ASSIGN_OR_RETURN(Query row, database->Prepare(KeysQuery()));
  while (true) {
    MYCC_ASSIGN_OR_RETURN(const bool found, row.Next());
    if (!found) return absl::OkStatus();
    KeyStats key;
    key.workload_name = row.Text(0);
    key.key = {row.Text(1), row.Text(2)};
    key.records = row.Int(3);
    key.verified_ok = row.Int(4);
    key.best_warm_seconds = row.Real(5);
    key.best_cold_seconds = row.Real(6);
    key.best_model_seconds = row.Real(7);
    key.pinned = row.Int(8) != 0;
    key.banned = row.Int(9);
    stats->keys.push_back(std::move(key));
  }
}

}  // namespace

absl::StatusOr<LogStats> ReadLogStats(const TuningLog& log) {
  LogStats stats;
  MYCC_ASSIGN_OR_RETURN(const ForeignCounts foreign, CountForeign(log));
  stats.foreign = foreign.records;
  stats.foreign_waiting = foreign.waiting;
  MutexLock lock(log.database()->mutex());
  MYCC_RETURN_IF_ERROR(ReadCounts(log.database(), &stats));
  MYCC_RETURN_IF_ERROR(ReadStatuses(log.database(), &stats));
  MYCC_RETURN_IF_ERROR(ReadKeys(log.database(), &stats));
  return stats;
}

}  // namespace mycc
