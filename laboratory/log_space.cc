#include "laboratory/log_space.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "laboratory/trace_decisions.h"
#include "proto/names.h"

namespace mycc {
namespace {

// The words of T4.
std::string FailureOf(v1::MeasureStatus status) {
  switch (status) {
    case v1::MEASURE_STATUS_OK: return "";
    case v1::MEASURE_STATUS_BUILD_ERROR: return "compile";
    case v1::MEASURE_STATUS_BUILD_TIMEOUT:
    case v1::MEASURE_STATUS_RUN_TIMEOUT: return "timeout";
    case v1::MEASURE_STATUS_WRONG_RESULT: return "correctness";
    default: return "runtime";
  }
}

bool IsHash(const std::string& text) {
  constexpr size_t kShortestHash = 6;
  return text.size() >= kShortestHash && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

RecordFilter FilterOf(const LogTask& task) {
  RecordFilter filter;
  (IsHash(task.workload) ? filter.workload_hash : filter.workload_name) = task.workload;
  filter.target = task.target;
  filter.protocol = task.protocol;
  filter.only_current = true;
  return filter;
}

// Collects the trials of a task and sees that they are of one.
class TrialCollector {
 public:
  absl::Status Add(const v1::Record& record) {
    const v1::MeasureResult& result = record.result();
    if (IsInfrastructureFailure(result.status())) return absl::OkStatus();
    MYCC_RETURN_IF_ERROR(IsOne("workload", record.workload_hash(), &workload_));
    MYCC_RETURN_IF_ERROR(IsOne("target", record.target(), &target_));
    MYCC_RETURN_IF_ERROR(IsOne("timing protocol", ProtocolName(result.timing().protocol()), &protocol_));
    ResultTable::Row row;
    row.where = absl::StrCat("trial ", record.trial());
    MYCC_ASSIGN_OR_RETURN(const bool has_sketch, AddTraceDecisions(record.trace(), row.where, &table, &row));
    if (!has_sketch) return absl::OkStatus();
    row.compile_seconds = result.timing().build_seconds();
    row.failure = FailureOf(result.status());
    if (row.failure.empty()) {
      row.run_seconds.assign(result.timing().samples_seconds().begin(),
                             result.timing().samples_seconds().end());
      if (row.run_seconds.empty()) row.run_seconds = {result.timing().seconds()};
    }
    table.kernel = record.workload_name().empty() ? record.workload_hash() : record.workload_name();
    table.device = result.device().model().empty() ? record.target() : result.device().model();
    table.Add(std::move(row));
    return absl::OkStatus();
  }

  ResultTable table;

 private:
  static absl::Status IsOne(const char* what, const std::string& text, std::string* known) {
    if (known->empty()) *known = text;
    if (*known == text) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("trials of more than one ", what, ", \"", *known,
                                                   "\" and \"", text, "\"; expected those of one"));
  }

  std::string workload_, target_, protocol_;
};

}  // namespace

absl::StatusOr<RecordedSpace> ReadLogSpace(const TuningLog& log, const LogTask& task, SpaceCounts* counts) {
  TrialCollector trials;
  const absl::Status read =
      log.ForEach(FilterOf(task), [&](const StoredRecord& stored) { return trials.Add(stored.record); });
  if (absl::IsInvalidArgument(read))
    return absl::InvalidArgumentError(absl::StrCat(log.path(), ": ", read.message()));
  MYCC_RETURN_IF_ERROR(read);
  if (trials.table.rows().empty()) {
    return absl::NotFoundError(
        absl::StrCat(log.path(), ": no trial of the workload \"", task.workload, "\"",
                     task.target.empty() ? "" : absl::StrCat(" for the target \"", task.target, "\""),
                     "; expected a hash or a name of `mycc-tune log list`"));
  }
  SpaceCounts counted;
  auto space = MakeRecordedSpace(trials.table, nullptr, log.path(), &counted);
  if (counts != nullptr) *counts = counted;
  return space;
}

}  // namespace mycc
