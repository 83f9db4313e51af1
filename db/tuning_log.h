// The tuning log: it keeps every measured trial, and finds the best ones in microseconds. A record's key is
// (workload hash, target). Within a key, verified OK records rank by their time under one protocol, or by the
// order of a final round (RankSeconds). A pinned trace comes before the best one; a banned trace is never
// served. A record that is not proven ranks but is not served. Thread rule: thread-safe; each call is atomic.
// One writer and any number of readers, in this process and in others.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "db/log_file.h"
#include "db/record_filter.h"
#include "db/record_table.h"
#include "proto/records.pb.h"

namespace mycc {

// The wall clock, as microseconds since 1970; a test gives its own.
using Clock = std::function<int64_t()>;

struct LogKey {
  std::string workload_hash;
  std::string target;
};

struct KnownWorkload {
  std::string hash;
  std::string text;
};

// Called with the reason why a record is passed over.
using DamageListener = std::function<void(int64_t record_id, const absl::Status& why)>;

class TuningLog {
 public:
  static absl::StatusOr<std::unique_ptr<TuningLog>> Open(const std::string& path, OpenMode mode,
                                                         Clock clock = SystemUnixMicros);

  // From now on, rankings and lists pass over records whose rows are damaged. The listener gets each once, on
  // the thread that met it; it must not call the log. Without a listener such a record is an error (DataLoss)
  // of the call. REQUIRES: no call is under way.
  void OnDamage(DamageListener listener) { on_damage_ = std::move(listener); }

  const std::string& path() const { return file_.database()->path(); }

  // Keeps records in one transaction: after OK, all of them survive a crash; after an error, none was kept. A
  // result that the log already holds is not kept twice; another one under its trial's name is kept beside it
  // (namesake.h). Results are in the order of `records`.
  absl::StatusOr<std::vector<AppendedRecord>> Append(absl::Span<const v1::Record> records);

  // The pinned record, or the fastest. NotFound when the key has no record under this protocol that may be
  // served (IsServable).
  absl::StatusOr<StoredRecord> Best(const LogKey& key, v1::TimingProtocol protocol) const;
  // Up to k records in that order, each of another trace, all timed by the newest timer version. Before one
  // that ranks first by a time of its own stands the default schedule's, where the same job found that
  // faster: it may rank behind by a final round of another, slower moment.
  absl::StatusOr<std::vector<StoredRecord>> TopK(const LogKey& key, v1::TimingProtocol protocol, int k) const;
  // The same with records that are not proven, for callers that measure them again.
  absl::StatusOr<std::vector<StoredRecord>> Leaders(const LogKey& key, v1::TimingProtocol protocol,
                                                    int k) const;
  // For near look-ups: the best record of each target with one for this workload, and of each shape (and
  // target) with one for this computation. By key, the oldest first; possibly none.
  absl::StatusOr<std::vector<StoredRecord>> BestOfTargets(const std::string& workload_hash,
                                                          v1::TimingProtocol protocol) const;
  absl::StatusOr<std::vector<StoredRecord>> BestOfShapes(const std::string& shape_erased_hash,
                                                         v1::TimingProtocol protocol) const;

  // The workloads of one computation, at any shape, with a record for the target; the oldest
  // first.
  absl::StatusOr<std::vector<KnownWorkload>> WorkloadsOfShapes(const std::string& shape_erased_hash,
                                                               const std::string& target) const;
  // The number of distinct candidates that were measured, with any result; counted up to `limit`.
  absl::StatusOr<int64_t> CountMeasured(const LogKey& key, v1::TimingProtocol protocol, int64_t limit) const;

  absl::StatusOr<StoredRecord> Get(int64_t id) const;
  absl::StatusOr<StoredRecord> Find(const std::string& trial) const;
  // The verified time that is valid for a record's trace, under its protocol and timer: possibly its own.
  // Nullopt: the trace has failed since.
  absl::StatusOr<std::optional<StoredRecord>> ValidRecordOf(const v1::Record& record) const;
  absl::StatusOr<std::vector<StoredRecord>> List(const RecordFilter& filter) const;
  // Calls `visit` for each record of the filter without holding more than a page of them, nor any lock
  // meanwhile. Stops at an error.
  absl::Status ForEach(const RecordFilter& filter,
                       const std::function<absl::Status(const StoredRecord&)>& visit) const;
  // Pins or bans the trace of a record, for its key. A key has one pin: a new one takes its place. Only a
  // verified and proven OK record can be pinned.
  absl::Status SetOverride(int64_t record_id, OverrideKind kind, const std::string& reason);
  // Removes the pin or ban of that trace. NotFound when there is none, FailedPrecondition when it is of
  // another kind.
  absl::Status ClearOverride(int64_t record_id, OverrideKind kind);

  // Copies the log, as of one moment, to a new self-contained file. AlreadyExists when there is a file.
  absl::Status Backup(const std::string& path) const;

  // FailedPrecondition when the file that is open no longer stands at its path: it was deleted, moved or
  // replaced, and writes to it would be lost.
  absl::Status CheckInPlace() const { return file_.CheckInPlace(); }

  // Writes a page as a change does, durably, and changes nothing: for a writer that could not write, and has
  // nothing else to write.
  absl::Status TryWrite();

  // Why nothing can be written now, where there is no space for it.
  absl::Status WriteTrouble() const;

  // Leaves one self-contained file. Afterwards the log may only be destroyed.
  absl::Status Close() { return file_.Close(); }
  // The same, but removes a file that Open has made and that is still empty: for a command that has failed.
  void Abandon() { file_.Abandon(); }

  // For the other classes of db/ that keep their tables in the same file.
  Database* database() const { return file_.database(); }
  int64_t now() const { return clock_(); }

 private:
  TuningLog(LogFile file, Clock clock) : file_(std::move(file)), clock_(std::move(clock)) {}

  // One query's records, without those that are passed over: `damaged` counts them. REQUIRES: the mutex.
  absl::StatusOr<std::vector<StoredRecord>> Read(const std::string& where, std::vector<SqlValue> values,
                                                 DamagedRecords* damaged) const;
  absl::StatusOr<std::vector<StoredRecord>> ReadPage(const RecordFilter& filter,
                                                     DamagedRecords* damaged) const;
  // The pinned record, then the ranked ones. REQUIRES: the mutex.
  absl::StatusOr<std::vector<StoredRecord>> Ranked(int64_t key, v1::TimingProtocol protocol, int k,
                                                   bool only_proven) const;
  // The first records of a ranking. REQUIRES: the mutex.
  absl::StatusOr<std::vector<StoredRecord>> ByRank(int64_t key, v1::TimingProtocol protocol, int k,
                                                   bool only_proven) const;
  // ValidRecordOf within a key. REQUIRES: the mutex.
  absl::StatusOr<std::optional<StoredRecord>> ReadValid(int64_t key, const v1::Record& record) const;
  // The default schedule, where the job that timed `best` by itself found it faster, and no other code of it
  // was measured since. REQUIRES: the mutex.
  absl::StatusOr<std::optional<StoredRecord>> FasterDefault(int64_t key, const StoredRecord& best) const;
  // Puts it before the others. REQUIRES: the mutex.
  absl::Status PutFasterDefaultFirst(int64_t key, std::vector<StoredRecord>* best) const;
  absl::StatusOr<std::vector<StoredRecord>> RankedOf(const LogKey& key, v1::TimingProtocol protocol, int k,
                                                     bool only_proven) const;
  // The best records of keys that a query names.
  absl::StatusOr<std::vector<StoredRecord>> BestOfKeys(const std::string& select_keys,
                                                       const std::string& hash,
                                                       v1::TimingProtocol protocol) const;

  LogFile file_;
  const Clock clock_;
  DamageListener on_damage_;
  mutable std::set<int64_t> told_;  // the damaged records that the listener has heard of; under the mutex
};

}  // namespace mycc
