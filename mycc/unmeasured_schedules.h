// Schedules that need no measuring: the default schedule of a workload, and the decisions of a near record's
// trace fitted to it. Thread rule: a value; functions are pure.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/function.h"
#include "codegen/schedule/trace.h"
#include "codegen/target/target.h"
#include "codegen/workload/workload.h"
#include "tuner/space/space.h"

namespace mycc {

// A trace, what it makes of the canonical workload, and the seconds that the analytic model expects of it.
struct ScoredSchedule {
  Trace trace;
  Function function;
  double seconds = 0;
};

class UnmeasuredSchedules {
 public:
  // Replays each sketch's default choice, once. REQUIRES: `canonical` is canonical.
  UnmeasuredSchedules(const Workload& canonical, const Target& target);

  // Each sketch's own guess, the one first that the analytic model expects to be fastest. On a GPU, those
  // that compute a chain of stages in one pass come before those of single stages. The last is the naive
  // nest, with infinite seconds: it can be lowered whatever the target.
  const std::vector<ScoredSchedule>& defaults() const { return defaults_; }

  // The legal point of the sketch that `trace` names, nearest to its decisions. NotFound when there is no
  // such sketch here, and the refusal of a step that is not legal here.
  absl::StatusOr<ScoredSchedule> Refit(const Trace& trace) const;

 private:
  void AddDefaults(std::vector<SketchWithDefault> generated);

  Workload canonical_;
  Target target_;
  std::vector<Sketch> sketches_;
  std::vector<ScoredSchedule> defaults_;
};

}  // namespace mycc
