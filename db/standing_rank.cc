#include "db/standing_rank.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/sha256.h"
#include "base/status.h"
#include "codegen/schedule/trace_names.h"
#include "db/record_check.h"
#include "db/record_table.h"

namespace mycc {
namespace {

constexpr char kListedOrigin[] = "listed/";  // Provenance.strategy begins with the strategy

constexpr char kOfFinalRound[] = R"sql(
WHERE r.key = ?1 AND r.trace_hash = ?2 AND +r.status = 1 AND r.verified = 1 AND r.superseded = 0
  AND r.protocol = ?3 AND r.timer_version = ?4 AND r.rank_seconds IS NOT NULL)sql";

}  // namespace

bool IsListedAgain(const v1::Record& record) {
  return absl::StartsWith(record.provenance().strategy(), kListedOrigin);
}

absl::Status KeepStandingRank(Database* database, v1::Record* record) {
  if (!IsVerifiedOk(*record)) return absl::OkStatus();
  const absl::StatusOr<int64_t> key = FindKey(database, record->workload_hash(), record->target());
  if (absl::IsNotFound(key.status())) return absl::OkStatus();
  MYCC_RETURN_IF_ERROR(key.status());
  return KeepStandingRank(database, *key, StoredTrace(record->trace()), record);
}

absl::Status KeepStandingRank(Database* database, int64_t key, const std::string& stored_trace,
                              v1::Record* record) {
  if (!IsVerifiedOk(*record)) return absl::OkStatus();
  v1::Timing& timing = *record->mutable_result()->mutable_timing();
  DamagedRecords damaged;
  MYCC_ASSIGN_OR_RETURN(
      const std::vector<StoredRecord> standing,
      ReadRecords(database, SelectRecords() + kOfFinalRound,
                  {key, Sha256Hex(stored_trace), int64_t{timing.protocol()}, int64_t{timing.timer_version()}},
                  &damaged));
  if (standing.empty()) return absl::OkStatus();
  const v1::MeasureResult& before = standing[0].record.result();
  const bool same_code = before.code_digest() == record->result().code_digest();
  timing.set_rank_seconds(same_code ? before.timing().rank_seconds() : timing.seconds());
  return absl::OkStatus();
}

}  // namespace mycc
