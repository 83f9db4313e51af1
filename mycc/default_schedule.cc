#include "mycc/default_schedule.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/driver/naive_gpu_schedule.h"
#include "codegen/schedule/schedule.h"
#include "tuner/cost/analytic.h"
#include "tuner/space/refit.h"
#include "tuner/space/space.h"

namespace mycc {
namespace {

absl::StatusOr<ScoredTrace> Instantiate(const Sketch& sketch, const Choice& choice, const Workload& canonical,
                                        const Target& target) {
  ScoredTrace scored;
  MYCC_ASSIGN_OR_RETURN(scored.trace, sketch.instantiate(choice));
  MYCC_ASSIGN_OR_RETURN(const Schedule schedule, Replay(canonical, target, scored.trace));
  MYCC_ASSIGN_OR_RETURN(scored.seconds, EstimateSeconds(schedule.function(), target));
  return scored;
}

// A schedule that can be lowered for the target whatever the workload.
Trace LastResort(const Workload& canonical, const Target& target) {
  if (target.kind == TargetKind::kCpu) return Trace{};
  const absl::StatusOr<Schedule> spread = NaiveGpuSchedule(Schedule::Create(canonical, target));
  return spread.ok() ? spread->trace() : Trace{};
}

}  // namespace

std::vector<ScoredTrace> DefaultSchedules(const Workload& canonical, const Target& target) {
  std::vector<ScoredTrace> schedules;
  for (const Sketch& sketch : GenerateSketches(canonical, target)) {
    absl::StatusOr<ScoredTrace> scored = Instantiate(sketch, sketch.default_choice, canonical, target);
    if (scored.ok()) schedules.push_back(*std::move(scored));
  }
  // The rules' order, most specific first, decides between equals.
  std::stable_sort(schedules.begin(), schedules.end(),
                   [](const ScoredTrace& a, const ScoredTrace& b) { return a.seconds < b.seconds; });
  schedules.push_back({LastResort(canonical, target), std::numeric_limits<double>::infinity()});
  return schedules;
}

absl::StatusOr<ScoredTrace> RefitSchedule(const Trace& neighbour, const Workload& canonical,
                                          const Target& target) {
  const std::vector<Sketch> sketches = GenerateSketches(canonical, target);
  const std::optional<Point> point = Refit(neighbour, sketches);
  if (!point) {
    return absl::NotFoundError(
        neighbour.sketch.empty()
            ? std::string("its trace names no sketch")
            : absl::StrCat("no rule makes the sketch `", neighbour.sketch, "` for this workload"));
  }
  return Instantiate(sketches[point->sketch], point->choice, canonical, target);
}

}  // namespace mycc
