#include "tests/perf/recorded_samples.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/schedule/trace.h"
#include "codegen/target/target.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"
#include "db/tuning_log.h"
#include "tuner/cost/appraisals.h"

namespace mycc {
namespace {

// A search learns from the outcome of a candidate; a fault of the worker or the device is none.
bool SpeaksForItsCandidate(const v1::MeasureResult& result) {
  return result.status() != v1::MEASURE_STATUS_UNSPECIFIED &&
         result.status() < v1::MEASURE_STATUS_DEVICE_LOST;
}

}  // namespace

absl::StatusOr<std::map<std::string, RecordedTask>> ReadRecordedTasks(const std::vector<std::string>& logs,
                                                                      const MachineOfTarget& machine) {
  std::map<std::string, RecordedTask> tasks;
  std::set<std::string> seen;
  for (const std::string& path : logs) {
    MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(path, OpenMode::kRead));
    MYCC_RETURN_IF_ERROR(log->ForEach({}, [&](const StoredRecord& stored) -> absl::Status {
      const v1::Record& record = stored.record;
      const std::string group = absl::StrCat(record.workload_hash(), " ", record.target());
      if (!SpeaksForItsCandidate(record.result())) return absl::OkStatus();
      if (!seen.insert(absl::StrCat(group, "\n", record.trace())).second) return absl::OkStatus();
      MYCC_ASSIGN_OR_RETURN(const Workload workload, ParseWorkload(record.workload(), path));
      MYCC_ASSIGN_OR_RETURN(const Target target, ParseTarget(record.target()));
      MYCC_ASSIGN_OR_RETURN(const Trace trace, ParseTrace(record.trace()));
      const absl::StatusOr<Appraisal> appraisal =
          Appraise(Canonicalize(workload), target, machine ? machine(target) : Machine(target), trace);
      if (!appraisal.ok()) return absl::OkStatus();
      RecordedTask& task = tasks[group];
      task.name = record.workload_name();
      Sample sample{appraisal->features, appraisal->analytic_seconds, std::nullopt, group};
      if (record.result().status() == v1::MEASURE_STATUS_OK)
        sample.seconds = record.result().timing().seconds();
      task.samples.push_back(std::move(sample));
      return absl::OkStatus();
    }));
  }
  return tasks;
}

}  // namespace mycc
