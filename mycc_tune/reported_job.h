// The job of a log that a report is about. Thread rule: re-entrant; the log is only read.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "db/tuning_log.h"

namespace mycc {

struct ReportedJob {
  std::string id;
  std::string others;  // the log's other jobs with results, for people; empty: none
};

// The job of an id; of an empty one, the newest job with results. NotFound for an id that is no job of the
// log, with those that have results, and for a log without any.
absl::StatusOr<ReportedJob> ChooseReportedJob(TuningLog* log, const std::string& id);

}  // namespace mycc
