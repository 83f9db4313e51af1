// Gives a search the knowledge of other devices that measured the same space: good points to begin with, and
// samples of a model. Pure functions.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/schedule/trace.h"
#include "laboratory/decision_scorer.h"
#include "laboratory/recorded_space.h"
#include "laboratory/replay.h"

namespace mycc {

struct WarmStart {
  std::vector<Trace> history;      // the best on the other devices together, best first
  std::vector<PriorResult> prior;  // all results whose values this space knows
};

// InvalidArgument when another space's parameters are not those of this one, in any order, or when no
// configuration of it can be expressed here.
absl::StatusOr<WarmStart> WarmStartFrom(const SpaceReplay& replay,
                                        const std::vector<const RecordedSpace*>& others);

}  // namespace mycc
