#include "laboratory/log_space.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "db/log_views.h"
#include "db/record_check.h"
#include "laboratory/trace_decisions.h"
#include "proto/names.h"
#include "proto/utf8.h"

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

// The time that the record ranks by, and the samples, moved to the same moment where that is the time of a
// final round.
void AddTimes(const v1::Timing& timing, ResultTable::Row* row) {
  row->seconds = RankSeconds(timing);
  for (const double sample : timing.samples_seconds())
    row->run_seconds.push_back(sample * (*row->seconds / timing.seconds()));
  if (row->run_seconds.empty()) row->run_seconds = {*row->seconds};
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
    if (result.timing().run_seconds() > 0) row.measuring_seconds = result.timing().run_seconds();
    row.failure = FailureOf(result.status());
    if (row.failure.empty()) AddTimes(result.timing(), &row);
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
    MYCC_ASSIGN_OR_RETURN(const std::string known, WorkloadsOfLog(log));
    return absl::NotFoundError(
        absl::StrCat(log.path(), ": no trial of the workload \"", task.workload, "\"",
                     task.target.empty() ? "" : absl::StrCat(" for the target \"", task.target, "\""),
                     "; expected the name or the hash of one that the log has: ", known));
  }
  SpaceCounts counted;
  auto space = MakeRecordedSpace(trials.table, nullptr, log.path(), &counted);
  if (counts != nullptr) *counts = counted;
  return space;
}

absl::StatusOr<std::string> WorkloadsOfLog(const TuningLog& log) {
  constexpr int64_t kMostKeys = 1000;
  constexpr size_t kMostNames = 8;
  MYCC_ASSIGN_OR_RETURN(const std::vector<KeyRow> keys, ReadKeys(log, 0, "", kMostKeys));
  std::set<std::string> names;
  for (const KeyRow& key : keys)
    names.insert(Printable(key.workload_name.empty() ? key.key.workload_hash : key.workload_name));
  if (names.empty()) return "none";
  const auto end = std::next(names.begin(), static_cast<std::ptrdiff_t>(std::min(names.size(), kMostNames)));
  const std::string shown = absl::StrJoin(names.begin(), end, ", ");
  return names.size() > kMostNames ? absl::StrCat(shown, ", and ", names.size() - kMostNames, " more")
                                   : shown;
}

}  // namespace mycc
