// The foreign records of a log: results that others measured and signed. They are in a table of their own, so
// that nothing ranks, serves or counts them. A foreign record waits until the log has a result of its own for
// the same trace, workload, target and protocol; until then it is a candidate for searches and for
// `mycc-tune reverify`. Its time says in which order to try, and nothing else. Thread rule: the calls that
// take a TuningLog are thread-safe; the others are those of a transaction's owner.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/record_filter.h"
#include "db/record_table.h"
#include "db/signer.h"
#include "db/tuning_log.h"

namespace mycc {

struct ForeignRecord {
  int64_t id = 0;
  v1::Record record;
  Signer signer;
  int64_t taken_unix_micros = 0;  // when it came into this log
  bool waits = false;
};

// The row of a signer, made or with the newest name. REQUIRES: a transaction.
absl::StatusOr<int64_t> EnsureSigner(Database* database, const Signer& signer);
// Keeps a record of a signer, unless the log has that or a newer one of the signer's for its trace (false);
// an older one is replaced. REQUIRES: a transaction; the record is verified and OK.
absl::StatusOr<bool> InsertForeign(Database* database, const v1::Record& record, int64_t signer,
                                   int64_t taken_unix_micros);

// The waiting records of a key, the fastest first: one for each trace, and k at most.
absl::StatusOr<std::vector<ForeignRecord>> WaitingForeign(const TuningLog& log, const LogKey& key,
                                                          v1::TimingProtocol protocol, int k);
// The number of traces of a key that wait, under any protocol.
absl::StatusOr<int64_t> CountWaitingForeign(const TuningLog& log, const LogKey& key);

struct WaitingKey {
  KeyText key;
  int64_t waiting = 0;
};
// The keys with foreign records that wait under a protocol, in the order in which they came.
absl::StatusOr<std::vector<WaitingKey>> WaitingKeys(const TuningLog& log, v1::TimingProtocol protocol);

// Calls `visit` for each foreign record of the filter, in the order in which they came. The filter's job,
// statuses and conditions on ranks are not looked at.
absl::Status ForEachForeign(const TuningLog& log, const RecordFilter& filter,
                            const std::function<absl::Status(const ForeignRecord&)>& visit);
// The number of foreign records, and of those that wait.
struct ForeignCounts {
  int64_t records = 0, waiting = 0;
};
absl::StatusOr<ForeignCounts> CountForeign(const TuningLog& log);

// Adds those of another log. Returns how many were new. REQUIRES: a transaction of `into`.
absl::StatusOr<int64_t> MergeForeign(const TuningLog& from, Database* into);
// Forgets those that wait no longer, and signers without records. Returns how many records. REQUIRES: a
// transaction.
absl::StatusOr<int64_t> ForgetMeasuredForeign(Database* database);

}  // namespace mycc
