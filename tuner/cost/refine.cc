#include "tuner/cost/refine.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "codegen/schedule/schedule.h"
#include "tuner/cost/analytic.h"
#include "tuner/search/sampler.h"

namespace mycc {
namespace {

constexpr int kMaxEvaluations = 200;  // of one sketch
constexpr double kStepGain = 0.98;    // a step must promise 2 %
constexpr double kTotalGain = 0.90;   // and all of them together 10 %, or the default stays

absl::StatusOr<Refined> Evaluate(const Workload& canonical, const Target& target,
                                 const std::vector<Sketch>& sketches, Point point) {
  Refined refined;
  MYCC_ASSIGN_OR_RETURN(refined.trace, sketches[point.sketch].instantiate(point.choice));
  MYCC_ASSIGN_OR_RETURN(const Schedule schedule, Replay(canonical, target, refined.trace));
  MYCC_ASSIGN_OR_RETURN(refined.seconds, EstimateSeconds(schedule.function(), target));
  refined.point = std::move(point);
  return refined;
}

}  // namespace

std::vector<Refined> RefineDefaults(const Workload& canonical, const Target& target,
                                    const std::vector<Sketch>& sketches) {
  const Sampler sampler(sketches);
  std::vector<Refined> refined;
  for (size_t s = 0; s < sketches.size(); ++s) {
    const absl::StatusOr<Refined> start =
        Evaluate(canonical, target, sketches, {static_cast<int>(s), sketches[s].default_choice});
    if (!start.ok()) continue;
    Refined best = *start;
    absl::flat_hash_set<Point> seen = {best.point};
    int evaluations = 0;
    for (bool moved = true; moved && evaluations < kMaxEvaluations;) {
      moved = false;
      Refined next = best;
      for (Point& neighbour : sampler.Neighbours(best.point)) {
        if (evaluations >= kMaxEvaluations || !seen.insert(neighbour).second) continue;
        ++evaluations;
        absl::StatusOr<Refined> candidate = Evaluate(canonical, target, sketches, std::move(neighbour));
        if (candidate.ok() && candidate->seconds < next.seconds) next = *std::move(candidate);
      }
      if (next.seconds < kStepGain * best.seconds) {
        best = std::move(next);
        moved = true;
      }
    }
    refined.push_back(best.seconds < kTotalGain * start->seconds ? best : *start);
  }
  return refined;
}

}  // namespace mycc
