// How long the baseline kernel usually takes on each device that workers offer, from one start of the server
// to the next. Thread rule: thread-compatible.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "db/baseline_store.h"
#include "db/log_writer.h"
#include "db/tuning_log.h"
#include "proto/worker.pb.h"
#include "server/time_source.h"
#include "server/worker_table.h"

namespace mycc {

class BaselineTable {
 public:
  // `log` and `time` outlive the table, which lives until the last write is answered.
  BaselineTable(TuningLog* log, const TimeSource* time, WriteExecutor write);

  // Reads what the log has. REQUIRES: called first.
  absl::Status Start();
  // The seconds of a device that a worker offers; 0: not known.
  double Usual(const std::string& worker, const v1::DeviceOffer& offer) const;
  // Keeps those of a session that ends. Nobody waits for the log to have them.
  void Keep(const WorkerTable::Session& session);

 private:
  BaselineStore store_;
  const TimeSource* const time_;
  const WriteExecutor write_;
  std::map<std::string, double> usual_;  // by device
};

}  // namespace mycc
