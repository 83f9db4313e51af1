// Chooses schedules without measuring: the default schedule of a workload, and a neighbour's decisions fitted
// to it. Pure.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "codegen/schedule/trace.h"
#include "codegen/target/target.h"
#include "codegen/workload/workload.h"

namespace mycc {

// A trace and what the analytic model expects of it.
struct ScoredTrace {
  Trace trace;
  double seconds = 0;
};

// Each sketch's own guess, the one first that the analytic model expects to be fastest, and last the naive
// nest (for a GPU, spread over its threads), with infinite seconds: it can be lowered whatever the target.
// REQUIRES: `canonical` is canonical, here and below.
std::vector<ScoredTrace> DefaultSchedules(const Workload& canonical, const Target& target);

// The legal point of the sketch that `neighbour` names, nearest to its decisions. NotFound when there is no
// such sketch here, and the refusal of a step that is not legal here.
absl::StatusOr<ScoredTrace> RefitSchedule(const Trace& neighbour, const Workload& canonical,
                                          const Target& target);

}  // namespace mycc
