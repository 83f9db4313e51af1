#include "server/history.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/status.h"
#include "codegen/workload/parse.h"

namespace mycc {
namespace {

constexpr int kOwn = 4, kOfOtherTargets = 2, kOfOtherShapes = 3;

using Records = std::vector<StoredRecord>;

// A damaged record teaches nothing, and the job begins without it.
absl::StatusOr<Records> Readable(absl::StatusOr<Records> records) {
  return absl::IsDataLoss(records.status()) ? Records() : std::move(records);
}

}  // namespace

absl::StatusOr<const std::vector<History::Shape>*> History::ShapesOf(const Family& family) {
  const auto [known, is_new] = shapes_.try_emplace(family);
  if (!is_new) return &known->second;
  MYCC_ASSIGN_OR_RETURN(const std::vector<KnownWorkload> workloads,
                        log_->WorkloadsOfShapes(family.first, family.second));
  for (const KnownWorkload& workload : workloads) {
    const absl::StatusOr<Workload> parsed = ParseWorkload(workload.text, "the log");
    if (parsed.ok()) known->second.push_back({workload.hash, CountFlops(*parsed)});
  }
  return &known->second;
}

absl::StatusOr<std::vector<StoredRecord>> History::NearestShapes(const PlannedTask& task, int count) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<Shape>* shapes,
                        ShapesOf({task.key.shape_erased_hash, task.key.target}));
  const double flops = CountFlops(task.workload);
  // How far a shape's work is from ours, as a ratio.
  std::vector<std::pair<double, const Shape*>> by_distance;
  for (const Shape& shape : *shapes) {
    if (shape.workload_hash == task.key.workload_hash) continue;
    by_distance.emplace_back(std::abs(std::log((shape.flops + 1) / (flops + 1))), &shape);
  }
  std::stable_sort(by_distance.begin(), by_distance.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<StoredRecord> nearest;
  for (const auto& [distance, shape] : by_distance) {
    if (static_cast<int>(nearest.size()) == count) break;
    MYCC_ASSIGN_OR_RETURN(Records best,
                          Readable(log_->TopK({shape->workload_hash, task.key.target}, task.protocol, 1)));
    if (!best.empty()) nearest.push_back(std::move(best[0]));
  }
  return nearest;
}

absl::StatusOr<v1::StoredTask> History::Recall(const PlannedTask& task, uint32_t trials, bool fresh) {
  v1::StoredTask stored;
  stored.set_count(task.count);
  const LogKey key{task.key.workload_hash, task.key.target};
  MYCC_ASSIGN_OR_RETURN(const Records own, Readable(log_->TopK(key, task.protocol, kOwn)));
  if (trials > 0 && !fresh && !own.empty()) {
    MYCC_ASSIGN_OR_RETURN(const int64_t measured, log_->CountMeasured(key, task.protocol, trials));
    stored.set_reused(measured >= trials);
  }
  std::set<std::string> known;
  const auto add = [&stored, &known](const StoredRecord& record) {
    if (known.insert(record.record.trace()).second) stored.add_history(record.record.trace());
  };
  for (const StoredRecord& record : own) add(record);

  MYCC_ASSIGN_OR_RETURN(Records targets,
                        Readable(log_->BestOfTargets(task.key.workload_hash, task.protocol)));
  std::erase_if(targets,
                [&](const StoredRecord& record) { return record.record.target() == task.key.target; });
  for (size_t i = 0; i < targets.size() && i < kOfOtherTargets; ++i) add(targets[i]);

  MYCC_ASSIGN_OR_RETURN(const Records shapes, NearestShapes(task, kOfOtherShapes));
  for (const StoredRecord& record : shapes) add(record);
  return stored;
}

}  // namespace mycc
