#include "server/history.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "codegen/workload/parse.h"
#include "proto/names.h"

namespace mycc {
namespace {

constexpr int kOwn = 4, kOfOtherTargets = 2, kOfOtherShapes = 3;

// How far another shape's work is from ours, as a ratio.
double Distance(const v1::Record& record, double flops) {
  const absl::StatusOr<Workload> workload = ParseWorkload(record.workload(), "the log");
  if (!workload.ok()) return HUGE_VAL;
  return std::abs(std::log((CountFlops(*workload) + 1) / (flops + 1)));
}

// Distinct candidates that were measured, whatever came of them.
absl::StatusOr<size_t> CountMeasured(const TuningLog& log, const PlannedTask& task,
                                     v1::TimingProtocol protocol) {
  RecordFilter filter;
  filter.workload_hash = task.key.workload_hash;
  filter.target = task.key.target;
  filter.protocol = protocol;
  std::set<std::string> traces;
  MYCC_RETURN_IF_ERROR(log.ForEach(filter, [&traces](const StoredRecord& stored) {
    if (!IsInfrastructureFailure(stored.record.result().status())) traces.insert(stored.record.trace());
    return absl::OkStatus();
  }));
  return traces.size();
}

}  // namespace

absl::StatusOr<v1::StoredTask> RecallTask(const TuningLog& log, const PlannedTask& task,
                                          v1::TimingProtocol protocol, uint32_t trials, bool fresh) {
  v1::StoredTask stored;
  stored.set_count(task.count);
  const LogKey key{task.key.workload_hash, task.key.target};
  MYCC_ASSIGN_OR_RETURN(const std::vector<StoredRecord> own, log.TopK(key, protocol, kOwn));
  if (trials > 0 && !fresh && !own.empty()) {
    MYCC_ASSIGN_OR_RETURN(const size_t measured, CountMeasured(log, task, protocol));
    stored.set_reused(measured >= trials);
  }
  std::set<std::string> known;
  const auto add = [&stored, &known](const StoredRecord& record) {
    if (known.insert(record.record.trace()).second) stored.add_history(record.record.trace());
  };
  for (const StoredRecord& record : own) add(record);

  MYCC_ASSIGN_OR_RETURN(std::vector<StoredRecord> targets,
                        log.BestOfTargets(task.key.workload_hash, protocol));
  std::erase_if(targets,
                [&](const StoredRecord& record) { return record.record.target() == task.key.target; });
  for (size_t i = 0; i < targets.size() && i < kOfOtherTargets; ++i) add(targets[i]);

  MYCC_ASSIGN_OR_RETURN(std::vector<StoredRecord> shapes,
                        log.BestOfShapes(task.key.shape_erased_hash, protocol));
  std::erase_if(shapes, [&](const StoredRecord& record) {
    return record.record.target() != task.key.target ||
           record.record.workload_hash() == task.key.workload_hash;
  });
  const double flops = CountFlops(task.workload);
  std::stable_sort(shapes.begin(), shapes.end(), [flops](const StoredRecord& a, const StoredRecord& b) {
    return Distance(a.record, flops) < Distance(b.record, flops);
  });
  for (size_t i = 0; i < shapes.size() && i < kOfOtherShapes; ++i) add(shapes[i]);
  return stored;
}

}  // namespace mycc
