// One search of a recorded space: a strategy asks, the recorded times answer. Pure functions: the same
// arguments give the same trajectory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "laboratory/decision_scorer.h"
#include "laboratory/replay.h"

namespace mycc {

struct RunConfig {
  std::string strategy = "evolutionary";
  uint64_t seed = 0;
  int generation_size = 16;
  // How many generations are in flight, unseen, when the next one is chosen.
  int lag = 0;
  bool noise = false;  // each evaluation's time is one repetition, drawn at random
  // The search goes on until it has spent both, but does no more than four times the evaluations.
  int evaluations = 200;
  double cost_seconds = 0;
  std::function<void(int evaluations)> evaluated;  // called after each generation with its size; may be null
};

// The state after an evaluation.
struct Evaluated {
  int configuration = 0;
  bool failed = false;
  double spent_seconds = 0;  // on all evaluations so far
  double fraction = 0;       // the optimum's time / the true time of what looks best so far; 0: nothing
};

struct Trajectory {
  std::vector<Evaluated> steps;
  bool exhausted = false;  // the strategy had no more to propose

  // The fraction after a number of evaluations, or after the last one where there were fewer; 0 before any.
  double FractionAfter(int evaluations) const;
  // The number of evaluations that were finished within a time.
  int EvaluationsWithin(double seconds) const;
  int FailuresWithin(int evaluations) const;
  // The evaluation that first reached a fraction, counted from 1; 0 where none did.
  int EvaluationsTo(double fraction) const;
};

// `history` as for MakeSearchStrategy; `scorers` may be null: no predictions.
absl::StatusOr<Trajectory> RunSearch(const RunConfig& config, const SpaceReplay& replay,
                                     const std::vector<Trace>& history, const ScorerMaker* scorers);

}  // namespace mycc
