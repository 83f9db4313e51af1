#include "mycc/unmeasured_schedules.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/driver/naive_gpu_schedule.h"
#include "codegen/schedule/schedule.h"
#include "tuner/cost/analytic.h"
#include "tuner/space/refit.h"

namespace mycc {
namespace {

// A schedule that can be lowered for the target whatever the workload.
ScoredSchedule LastResort(const Workload& canonical, const Target& target) {
  Schedule schedule = Schedule::Create(canonical, target);
  if (target.kind == TargetKind::kCuda) {
    absl::StatusOr<Schedule> bound = NaiveGpuSchedule(schedule);
    if (bound.ok()) schedule = *std::move(bound);
  }
  return {schedule.trace(), schedule.function(), std::numeric_limits<double>::infinity()};
}

}  // namespace

UnmeasuredSchedules::UnmeasuredSchedules(const Workload& canonical, const Target& target)
    : canonical_(canonical), target_(target) {
  for (SketchWithDefault& generated : GenerateSketchesWithDefaults(canonical, target)) {
    const absl::StatusOr<double> seconds = EstimateSeconds(generated.function, target);
    if (seconds.ok())
      defaults_.push_back({std::move(generated.trace), std::move(generated.function), *seconds});
    sketches_.push_back(std::move(generated.sketch));
  }
  // The rules' order, most specific first, decides between equals.
  std::stable_sort(defaults_.begin(), defaults_.end(),
                   [](const ScoredSchedule& a, const ScoredSchedule& b) { return a.seconds < b.seconds; });
  defaults_.push_back(LastResort(canonical, target));
}

absl::StatusOr<ScoredSchedule> UnmeasuredSchedules::Refit(const Trace& trace) const {
  const std::optional<Point> point = mycc::Refit(trace, sketches_);
  if (!point) {
    return absl::NotFoundError(trace.sketch.empty() ? std::string("its trace names no sketch")
                                                    : absl::StrCat("no rule makes the sketch `", trace.sketch,
                                                                   "` for this workload"));
  }
  ScoredSchedule scored;
  MYCC_ASSIGN_OR_RETURN(scored.trace, sketches_[point->sketch].instantiate(point->choice));
  MYCC_ASSIGN_OR_RETURN(const Schedule schedule, Replay(canonical_, target_, scored.trace));
  scored.function = schedule.function();
  MYCC_ASSIGN_OR_RETURN(scored.seconds, EstimateSeconds(scored.function, target_));
  return scored;
}

}  // namespace mycc
