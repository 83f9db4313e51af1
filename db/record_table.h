// Rows of the log's tables <-> records. For the classes of db/ that own a transaction; others use
// tuning_log.h. Thread rule: thread-compatible; the caller holds the database's mutex.
//
// The newest result of a trace speaks for it: a verified OK record is superseded by a newer verified OK
// record of the same trace under the same protocol and timer, and by a newer wrong result or crash of the
// same trace under any. So a trace measured twice ranks once, with its latest time, and one that was found
// wrong no longer ranks. A time with a rank of its own, from a final round, is not superseded by one without,
// which was taken at another moment: it stands until the next round. The outcome does not depend on the order
// of insertion.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "db/database.h"
#include "db/schema.h"
#include "proto/records.pb.h"

namespace mycc {

// A person's word on a trace, which outranks the measurements.
struct Override {
  OverrideKind kind;
  std::string reason;
  int64_t made_unix_micros = 0;
  int64_t record_id = 0;  // the record it was given for
};

struct StoredRecord {
  int64_t id = 0;
  v1::Record record;
  bool superseded = false;
  std::optional<Override> override_by;
};

// What the records of one log entry share: the key's workload and target, as text.
struct KeyText {
  std::string workload;
  std::string workload_hash;
  std::string shape_erased_hash;
  std::string workload_name;
  std::string target;
};

struct AppendedRecord {
  int64_t id = 0;
  bool is_new = false;  // false: the log already held this trial, and keeps what it held
};

// The id of a key, made if the log has none. FailedPrecondition when the hash stands for another workload.
absl::StatusOr<int64_t> EnsureKey(Database* database, const KeyText& key);
// NotFound when the log has no such key.
absl::StatusOr<int64_t> FindKey(Database* database, const std::string& workload_hash,
                                const std::string& target);

// REQUIRES: a transaction.
absl::StatusOr<AppendedRecord> InsertRecord(Database* database, const v1::Record& record,
                                            int64_t now_unix_micros);

// "SELECT <columns> FROM <tables>" for ReadRecords; the records are `r`, their overrides `o`, workloads `w`,
// targets `t`.
const std::string& SelectRecords();
// The row that a query over SelectRecords() stands at. DataLoss when its contents are damaged.
absl::StatusOr<StoredRecord> ReadRecord(const Database& database, const Query& row);
// All rows of such a query.
absl::StatusOr<std::vector<StoredRecord>> ReadRecords(Database* database, const std::string& sql,
                                                      std::vector<SqlValue> values);

}  // namespace mycc
