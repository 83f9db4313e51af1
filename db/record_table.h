// Converts between records and rows of the log's tables. Used by the classes of db/ that own a transaction;
// others use tuning_log.h. Thread rule: thread-compatible; the caller holds the database's mutex.
//
// `recorded` is the stamp of the log's own clock, a hybrid logical clock (Kulkarni et al., "Logical Physical
// Clocks", 2014): the time of day, but later than every stamp that the log gave or received before. It
// travels with the record into other logs and orders the results of a trace (precedence.h). The time at which
// a worker finished is kept for information only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "db/database.h"
#include "db/schema.h"
#include "proto/records.pb.h"

namespace mycc {

// A user's pin or ban of a trace, which outranks the measurements.
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

// The key's workload and target as text, which all records of the key share.
struct KeyText {
  std::string workload;
  std::string workload_hash;
  std::string shape_erased_hash;
  std::string workload_name;
  std::string target;
};

struct AppendedRecord {
  int64_t id = 0;
  bool is_new = false;         // false: the log held this very result already
  bool has_namesakes = false;  // new, and the log holds other results of this trial's name (namesake.h)
};

KeyText KeyTextOf(const v1::Record& record);
// The message that a row's `detail` holds: what no column or other table holds.
v1::Record DetailOf(v1::Record record);

// The id of a key, made if the log has none. FailedPrecondition when the hash stands for another workload.
absl::StatusOr<int64_t> EnsureKey(Database* database, const KeyText& key);
// NotFound when the log has no such key.
absl::StatusOr<int64_t> FindKey(Database* database, const std::string& workload_hash,
                                const std::string& target);

// Stamps a record that has no stamp yet (`recorded` is 0), no earlier than `now`. REQUIRES: a transaction.
absl::StatusOr<AppendedRecord> InsertRecord(Database* database, const v1::Record& record,
                                            int64_t now_unix_micros);

// The columns of a record that other rows know.
struct RecordPlace {
  std::string trial;
  int64_t key = 0;
  std::string stored_trace;  // by the names of primitives that logs hold (trace_names.h)
};
// The same for a record without those, which the log does not hold yet and which was checked.
absl::StatusOr<AppendedRecord> InsertNamed(Database* database, const RecordPlace& place, v1::Record detail,
                                           int64_t now_unix_micros);

// "SELECT <columns> FROM <tables>" for ReadRecords; the records are `r`, their overrides `o`, workloads `w`,
// targets `t`.
const std::string& SelectRecords();
// The record of a row of a query over SelectRecords(). DataLoss when its contents are damaged.
absl::StatusOr<StoredRecord> ReadRecord(const Database& database, const Query& row);
// The damaged rows: the record's id, and why.
using DamagedRecords = std::map<int64_t, absl::Status>;
// All rows of such a query. Damaged ones are left out and added to `damaged`; without it they are an error.
absl::StatusOr<std::vector<StoredRecord>> ReadRecords(Database* database, const std::string& sql,
                                                      std::vector<SqlValue> values,
                                                      DamagedRecords* damaged = nullptr);

}  // namespace mycc
