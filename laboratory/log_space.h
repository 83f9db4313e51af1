// Our own tuning logs, replayed: the trials of one task as a recorded space. Its parameters are `sketch` and
// the decisions of the traces; a decision that a sketch has not is the first of its values. Unlike
// brute-forced spaces it holds what a search chose to measure. A configuration's time is the one that its
// record ranks by (RankSeconds), and measuring it costs all that the worker did with it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "db/tuning_log.h"
#include "laboratory/recorded_space.h"
#include "laboratory/result_table.h"

namespace mycc {

// The trials of a (workload, target) under one timing protocol: results that a later one superseded, those of
// hand-written traces, and failures of devices and workers are left out. A workload is named by its hash or
// the beginning of one, or by its own name. Without a target, and without a protocol, the log has to hold one
// for the workload. InvalidArgument names the log and what was expected; NotFound: the log has no such trial.
struct LogTask {
  std::string workload;
  std::string target;
  v1::TimingProtocol protocol = v1::TIMING_PROTOCOL_UNSPECIFIED;
};
absl::StatusOr<RecordedSpace> ReadLogSpace(const TuningLog& log, const LogTask& task,
                                           SpaceCounts* counts = nullptr);

// The names of a log's workloads, for people: "conv, dense, and 3 more".
absl::StatusOr<std::string> WorkloadsOfLog(const TuningLog& log);

}  // namespace mycc
