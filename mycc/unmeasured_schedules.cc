#include "mycc/unmeasured_schedules.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/schedule/schedule.h"
#include "tuner/cost/analytic.h"
#include "tuner/space/refit.h"

namespace mycc {
namespace {

// The naive loop nest, which can be lowered for every target whatever the workload: lowering binds it to a
// GPU's blocks and threads.
ScoredSchedule LastResort(const Workload& canonical) {
  return {Trace(), BuildNaive(canonical), std::numeric_limits<double>::infinity()};
}

}  // namespace

UnmeasuredSchedules::UnmeasuredSchedules(const Workload& canonical, const Target& target)
    : canonical_(canonical), target_(target) {
  AddDefaults(GenerateSketchesWithDefaults(canonical, target));
  const auto is_streamed = [](const Sketch& sketch) { return IsStreamedSketch(sketch.name); };
  if (target.kind == TargetKind::kCuda && std::ranges::any_of(sketches_, is_streamed))
    AddDefaults(SketchesOfSingleStages(canonical, target));
  defaults_.push_back(LastResort(canonical));
}

void UnmeasuredSchedules::AddDefaults(std::vector<SketchWithDefault> generated) {
  const auto first = static_cast<std::ptrdiff_t>(defaults_.size());
  for (SketchWithDefault& one : generated) {
    const absl::StatusOr<double> seconds = EstimateSeconds(one.function, target_);
    if (seconds.ok()) defaults_.push_back({std::move(one.trace), std::move(one.function), *seconds});
    sketches_.push_back(std::move(one.sketch));
  }
  // The rules' order, most specific first, decides between equals.
  std::stable_sort(defaults_.begin() + first, defaults_.end(),
                   [](const ScoredSchedule& a, const ScoredSchedule& b) { return a.seconds < b.seconds; });
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
