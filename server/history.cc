#include "server/history.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "base/status.h"
#include "codegen/workload/parse.h"
#include "db/foreign_table.h"

namespace mycc {
namespace {

constexpr int kOwn = 4, kForeign = 4, kOfOtherTargets = 2, kOfOtherShapes = 3;

using Records = std::vector<StoredRecord>;

double WorkOf(const Workload& workload) { return std::log(CountFlops(workload) + 1); }

}  // namespace

absl::StatusOr<std::vector<History::Shape>*> History::ShapesOf(const Family& family) {
  const auto [known, is_new] = shapes_.try_emplace(family);
  std::vector<Shape>& shapes = known->second;
  if (!is_new) return &shapes;
  MYCC_ASSIGN_OR_RETURN(const std::vector<KnownWorkload> workloads,
                        log_->WorkloadsOfShapes(family.first, family.second));
  for (const KnownWorkload& workload : workloads) {
    const absl::StatusOr<Workload> parsed = ParseWorkload(workload.text, "the log");
    if (parsed.ok()) shapes.push_back({workload.hash, WorkOf(*parsed)});
  }
  std::stable_sort(shapes.begin(), shapes.end(),
                   [](const Shape& a, const Shape& b) { return a.work < b.work; });
  return &shapes;
}

absl::Status History::FindBest(const PlannedTask& task, Shape* shape) {
  if (shape->is_known) return absl::OkStatus();
  MYCC_ASSIGN_OR_RETURN(const Records best,
                        log_->TopK({shape->workload_hash, task.key.target}, task.protocol, 1));
  shape->is_known = true;
  if (!best.empty()) shape->best = best[0].record.trace();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> History::NearestShapes(const PlannedTask& task, size_t count) {
  MYCC_ASSIGN_OR_RETURN(std::vector<Shape>* const shapes,
                        ShapesOf({task.key.shape_erased_hash, task.key.target}));
  const double work = WorkOf(task.workload);
  auto above = std::lower_bound(shapes->begin(), shapes->end(), work,
                                [](const Shape& shape, double limit) { return shape.work < limit; });
  auto below = std::make_reverse_iterator(above);
  std::vector<std::string> nearest;
  while (nearest.size() < count && (above != shapes->end() || below != shapes->rend())) {
    const bool is_above =
        below == shapes->rend() || (above != shapes->end() && above->work - work < work - below->work);
    Shape& shape = is_above ? *above++ : *below++;
    if (shape.workload_hash == task.key.workload_hash) continue;
    MYCC_RETURN_IF_ERROR(FindBest(task, &shape));
    if (shape.best) nearest.push_back(*shape.best);
  }
  return nearest;
}

absl::StatusOr<int64_t> History::CountMeasured(const PlannedTask& task, int64_t most) const {
  const LogKey key{task.key.workload_hash, task.key.target};
  MYCC_ASSIGN_OR_RETURN(const Records own, log_->TopK(key, task.protocol, 1));
  return own.empty() ? int64_t{0} : log_->CountMeasured(key, task.protocol, most);
}

absl::StatusOr<v1::StoredTask> History::Recall(const PlannedTask& task, uint32_t trials, bool fresh) {
  v1::StoredTask stored;
  stored.set_count(task.count);
  stored.set_weight(task.weight);
  const LogKey key{task.key.workload_hash, task.key.target};
  MYCC_ASSIGN_OR_RETURN(const Records own, log_->TopK(key, task.protocol, kOwn));
  if (trials > 0 && !fresh && !own.empty()) {
    MYCC_ASSIGN_OR_RETURN(const int64_t measured, log_->CountMeasured(key, task.protocol, trials));
    stored.set_reused(measured >= trials);
  }
  std::set<std::string> known;
  const auto add = [&stored, &known](const std::string& trace) {
    if (known.insert(trace).second) stored.add_history(trace);
  };
  for (const StoredRecord& record : own) add(record.record.trace());
  MYCC_ASSIGN_OR_RETURN(const std::vector<ForeignRecord> foreign,
                        WaitingForeign(*log_, key, task.protocol, kForeign));
  for (const ForeignRecord& record : foreign) add(record.record.trace());

  MYCC_ASSIGN_OR_RETURN(Records targets, log_->BestOfTargets(task.key.workload_hash, task.protocol));
  std::erase_if(targets,
                [&](const StoredRecord& record) { return record.record.target() == task.key.target; });
  for (size_t i = 0; i < targets.size() && i < kOfOtherTargets; ++i) add(targets[i].record.trace());

  MYCC_ASSIGN_OR_RETURN(const std::vector<std::string> shapes, NearestShapes(task, kOfOtherShapes));
  for (const std::string& trace : shapes) add(trace);
  return stored;
}

}  // namespace mycc
