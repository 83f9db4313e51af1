// Searches a space by predictions alone, for a kernel that nothing will measure: a bounded evolution, then
// descent from its best points. Pure: the same sketches, history, predictions and configuration give the same
// points.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/schedule/trace.h"
#include "tuner/search/pool.h"
#include "tuner/search/scorer.h"
#include "tuner/space/space.h"

namespace mycc {

struct PredictedSearchConfig {
  uint64_t seed = 0;
  int population = 128;
  int evolution_steps = 4;  // of as many children as the population has members
  int centres = 4;          // points from which descent begins
  int descent_steps = 8;    // at most, from each
};

// The points that are expected to be fastest, the best first, at most `config.population`; none where the
// scorer refuses all that were looked at. `history`: traces whose decisions are re-fitted to these sketches;
// the sketches' defaults are looked at, too.
std::vector<Member> BestPredicted(const std::vector<Sketch>& sketches, const std::vector<Trace>& history,
                                  Scorer* scorer, const PredictedSearchConfig& config = {});

}  // namespace mycc
