#include "db/log_views.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace mycc {
namespace {

// A trace begins with its version and its sketch, one a line.
constexpr int kMostHeadCharacters = 1000;

std::string HeadOf(const std::string& trace) {
  const size_t first = trace.find('\n');
  const size_t second = first == std::string::npos ? first : trace.find('\n', first + 1);
  return trace.substr(0, second == std::string::npos ? second : second + 1);
}

}  // namespace

absl::StatusOr<std::vector<CandidateRow>> ReadCandidates(const TuningLog& log, const CandidatePage& page) {
  const std::string head =
      page.with_heads ? absl::StrCat("substr(trace, 1, ", kMostHeadCharacters, ")") : "''";
  const std::string sql = absl::StrCat(
      "SELECT id, trial, key, status, verified, rank_seconds IS NOT NULL, coalesce(seconds, 0), recorded, "
      "worker, ",
      head, " FROM records WHERE job = ?1 AND id > ?2 AND id < ?3 AND (?4 = 0 OR key = ?4) ORDER BY id ",
      page.newest ? "DESC" : "ASC", " LIMIT ?5");
  Database* const database = log.database();
  const MutexLock lock(database->mutex());
  const int64_t before = page.before > 0 ? page.before : std::numeric_limits<int64_t>::max();
  MYCC_ASSIGN_OR_RETURN(Query row,
                        database->Prepare(sql, {page.job, page.after, before, page.key, page.limit}));
  std::vector<CandidateRow> rows;
  while (true) {
    MYCC_ASSIGN_OR_RETURN(const bool found, row.Next());
    if (!found) break;
    rows.push_back({.id = row.Int(0),
                    .trial = row.Text(1),
                    .key = row.Int(2),
                    .status = static_cast<v1::MeasureStatus>(row.Int(3)),
                    .verified = row.Int(4) != 0,
                    .is_final = row.Int(5) != 0,
                    .seconds = row.Real(6),
                    .recorded_unix_micros = row.Int(7),
                    .worker = row.Text(8),
                    .head = HeadOf(row.Text(9))});
  }
  if (page.newest) std::ranges::reverse(rows);
  return rows;
}

absl::StatusOr<std::vector<int64_t>> ReadTaskKeys(const TuningLog& log, const std::string& job) {
  Database* const database = log.database();
  const MutexLock lock(database->mutex());
  MYCC_ASSIGN_OR_RETURN(Query row,
                        database->Prepare("SELECT key FROM tasks WHERE job = ?1 ORDER BY task", {job}));
  std::vector<int64_t> keys;
  while (true) {
    MYCC_ASSIGN_OR_RETURN(const bool found, row.Next());
    if (!found) return keys;
    keys.push_back(row.Int(0));
  }
}

absl::StatusOr<std::vector<MeasuredJob>> ReadMeasuredJobs(const TuningLog& log, int64_t limit) {
  constexpr char kJobs[] = R"sql(
SELECT id, created, (SELECT count(*) FROM records WHERE records.job = jobs.id) FROM jobs
WHERE EXISTS (SELECT 1 FROM records WHERE records.job = jobs.id) ORDER BY created DESC, id DESC LIMIT ?1)sql";
  Database* const database = log.database();
  const MutexLock lock(database->mutex());
  MYCC_ASSIGN_OR_RETURN(Query row, database->Prepare(kJobs, {limit}));
  std::vector<MeasuredJob> jobs;
  while (true) {
    MYCC_ASSIGN_OR_RETURN(const bool found, row.Next());
    if (!found) return jobs;
    jobs.push_back({row.Text(0), row.Int(1), row.Int(2)});
  }
}

absl::StatusOr<std::vector<KeyRow>> ReadKeys(const TuningLog& log, int64_t before, const std::string& text,
                                             int64_t limit) {
  constexpr char kKeys[] = R"sql(
SELECT k.id, w.name, w.hash, t.text
FROM keys k JOIN workloads w ON w.id = k.workload JOIN targets t ON t.id = k.target
WHERE k.id < ?1 AND (?2 = '' OR instr(w.name, ?2) > 0 OR instr(t.text, ?2) > 0 OR instr(w.hash, ?2) = 1)
ORDER BY k.id DESC LIMIT ?3)sql";
  Database* const database = log.database();
  const MutexLock lock(database->mutex());
  const int64_t end = before > 0 ? before : std::numeric_limits<int64_t>::max();
  MYCC_ASSIGN_OR_RETURN(Query row, database->Prepare(kKeys, {end, text, limit}));
  std::vector<KeyRow> keys;
  while (true) {
    MYCC_ASSIGN_OR_RETURN(const bool found, row.Next());
    if (!found) return keys;
    keys.push_back({row.Int(0), row.Text(1), {row.Text(2), row.Text(3)}});
  }
}

absl::StatusOr<LogFacts> ReadLogFacts(const TuningLog& log) {
  Database* const database = log.database();
  const MutexLock lock(database->mutex());
  LogFacts facts;
  MYCC_ASSIGN_OR_RETURN(const int64_t pages, database->ReadInt("PRAGMA page_count"));
  MYCC_ASSIGN_OR_RETURN(const int64_t page_bytes, database->ReadInt("PRAGMA page_size"));
  facts.file_bytes = pages * page_bytes;
  MYCC_ASSIGN_OR_RETURN(facts.newest_record, database->ReadInt("SELECT coalesce(max(id), 0) FROM records"));
  MYCC_ASSIGN_OR_RETURN(Query row, database->Prepare("SELECT state, count(*) FROM jobs GROUP BY state"));
  while (true) {
    MYCC_ASSIGN_OR_RETURN(const bool found, row.Next());
    if (!found) return facts;
    facts.jobs[static_cast<JobState>(row.Int(0))] = row.Int(1);
  }
}

}  // namespace mycc
