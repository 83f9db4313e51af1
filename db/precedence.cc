#include "db/precedence.h"

namespace mycc {
namespace {

// Rows that are verified OK (status 1), wrong (6) or crashed (4) speak for their trace. The sign + keeps a
// condition from the choice of an index: records_by_trace finds the few records of one trace.
constexpr char kSupersede[] = R"sql(
UPDATE records AS old SET superseded = 1
WHERE old.key = ?1 AND old.trace_hash = ?2 AND +old.status = 1 AND old.verified = 1 AND old.superseded = 0
  AND EXISTS (SELECT 1 FROM records AS new
    WHERE new.key = ?1 AND new.trace_hash = ?2 AND
      CASE WHEN +new.status IN (4, 6) THEN (new.recorded, new.trial) > (old.recorded, old.trial)
           ELSE +new.status = 1 AND new.verified = 1
                AND new.protocol = old.protocol AND new.timer_version = old.timer_version
                AND (new.proven, new.rank_seconds IS NOT NULL, new.recorded, new.trial)
                    > (old.proven, old.rank_seconds IS NOT NULL, old.recorded, old.trial) END))sql";
}  // namespace

absl::Status Supersede(Database* database, int64_t key, const std::string& trace_hash) {
  return database->Run(kSupersede, {key, trace_hash});
}

}  // namespace mycc
