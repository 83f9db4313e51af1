// The constants of the devices that workers offer: a worker is asked for those that the log lacks, when it
// registers, and tells them with a heartbeat. Impossible ones are refused, one by one. Thread rule:
// thread-compatible.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/event.h"
#include "db/constants_store.h"
#include "db/log_writer.h"
#include "db/tuning_log.h"
#include "proto/worker.pb.h"
#include "server/time_source.h"
#include "server/worker_table.h"

namespace mycc {

class ConstantsTable {
 public:
  // `told` hears of a log that cannot take constants; may be null. `log` and `time` outlive the table, which
  // lives until the last write is answered.
  ConstantsTable(TuningLog* log, const TimeSource* time, WriteExecutor write, EventLog told);

  // Reads what the log has. REQUIRES: called first.
  absl::Status Start();
  // The session's devices that can be measured, by this version of the micro-benchmarks, and were not yet.
  std::vector<std::string> Unmeasured(const WorkerTable::Session& session) const;
  // Keeps what the worker tells of these, and calls `done` when the log has it, or cannot take it: then the
  // next registration asks again. `refuse` gets a line for each constant that is not kept.
  void Take(const v1::HeartbeatRequest& request, const WorkerTable::Session& session,
            const std::function<void(const std::string&)>& refuse, std::function<void()> done);

 private:
  // The oldest are forgotten where they are too many.
  void Know(const StoredConstants& constants);

  ConstantsStore store_;
  const TimeSource* const time_;
  const WriteExecutor write_;
  const EventLog told_;
  // With the times of their measurement. As many as the log keeps, and the same ones.
  std::map<StoredConstants::Key, int64_t> known_;
};

}  // namespace mycc
