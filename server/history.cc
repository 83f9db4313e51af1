#include "server/history.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>
#include <tuple>

#include "base/status.h"
#include "codegen/workload/parse.h"
#include "codegen/workload/shape_distance.h"
#include "db/foreign_table.h"
#include "server/device_distance.h"

namespace mycc {
namespace {

constexpr int kOwn = 4, kForeign = 4, kOfOtherTargets = 2;
constexpr size_t kOfOtherShapes = 3;
constexpr size_t kWindow = 64;  // shapes of like work, among which those of like extents are chosen

using Records = std::vector<StoredRecord>;

// The distance of a record's target from the task's; targets of another sort come last.
double DistanceOf(const StoredRecord& stored, const Target& target) {
  const absl::StatusOr<Target> other = ParseTarget(stored.record.target());
  const std::optional<double> distance = other.ok() ? DeviceDistance(*other, target) : std::nullopt;
  return distance.value_or(std::numeric_limits<double>::infinity());
}

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
    if (parsed.ok()) shapes.push_back({workload.hash, WorkOf(*parsed), ExtentsOf(*parsed)});
  }
  std::ranges::stable_sort(shapes, [](const Shape& a, const Shape& b) { return a.work < b.work; });
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
  const std::vector<int64_t> extents = ExtentsOf(task.workload);
  auto above = std::ranges::lower_bound(*shapes, work, {}, &Shape::work);
  auto below = std::make_reverse_iterator(above);
  std::vector<std::string> nearest;
  // A window of shapes of like work at a time.
  while (nearest.size() < count && (above != shapes->end() || below != shapes->rend())) {
    std::vector<std::pair<double, Shape*>> window;
    while (window.size() < kWindow && (above != shapes->end() || below != shapes->rend())) {
      const bool is_above =
          below == shapes->rend() || (above != shapes->end() && above->work - work < work - below->work);
      Shape& shape = is_above ? *above++ : *below++;
      const std::optional<double> distance = ShapeDistance(shape.extents, extents);
      if (distance && shape.workload_hash != task.key.workload_hash) window.emplace_back(*distance, &shape);
    }
    std::ranges::stable_sort(window, [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [distance, shape] : window) {
      if (nearest.size() == count) break;
      MYCC_RETURN_IF_ERROR(FindBest(task, shape));
      if (shape->best) nearest.push_back(*shape->best);
    }
  }
  return nearest;
}

absl::StatusOr<const std::vector<History::Elsewhere>*> History::ElsewhereOf(const PlannedTask& task) {
  const auto [known, is_new] = elsewhere_.try_emplace({task.key.shape_erased_hash, task.protocol});
  if (!is_new) return &known->second;
  MYCC_ASSIGN_OR_RETURN(const Records records, log_->BestOfShapes(task.key.shape_erased_hash, task.protocol));
  for (const StoredRecord& stored : records) {
    const absl::StatusOr<Target> target = ParseTarget(stored.record.target());
    const absl::StatusOr<Workload> workload = ParseWorkload(stored.record.workload(), "the log");
    if (target.ok() && workload.ok())
      known->second.push_back({stored.record.target(), *target, ExtentsOf(*workload), stored.record.trace()});
  }
  return &known->second;
}

absl::StatusOr<std::vector<std::string>> History::NearestElsewhere(const PlannedTask& task, size_t count) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<Elsewhere>* const all, ElsewhereOf(task));
  const std::vector<int64_t> extents = ExtentsOf(task.workload);
  std::vector<std::tuple<double, double, const Elsewhere*>> order;
  for (const Elsewhere& one : *all) {
    const std::optional<double> device = DeviceDistance(one.target, task.target),
                                shape = ShapeDistance(one.extents, extents);
    // The workload itself is recalled before.
    if (one.target_text != task.key.target && device && shape && *shape > 0)
      order.emplace_back(*device, *shape, &one);
  }
  std::ranges::stable_sort(order, [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  std::vector<std::string> nearest;
  for (size_t i = 0; i < order.size() && i < count; ++i) nearest.push_back(std::get<2>(order[i])->trace);
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
  std::ranges::stable_sort(targets, [&task](const StoredRecord& a, const StoredRecord& b) {
    return DistanceOf(a, task.target) < DistanceOf(b, task.target);
  });
  for (size_t i = 0; i < targets.size() && i < kOfOtherTargets; ++i) add(targets[i].record.trace());

  MYCC_ASSIGN_OR_RETURN(const std::vector<std::string> shapes, NearestShapes(task, kOfOtherShapes));
  for (const std::string& trace : shapes) add(trace);
  if (shapes.size() == kOfOtherShapes) return stored;
  MYCC_ASSIGN_OR_RETURN(const std::vector<std::string> elsewhere,
                        NearestElsewhere(task, kOfOtherShapes - shapes.size()));
  for (const std::string& trace : elsewhere) add(trace);
  return stored;
}

}  // namespace mycc
