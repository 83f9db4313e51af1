// Simulates strategies on recorded spaces over many seeds, and says how near to the optimum they come for
// what they spend. Thread rule: Simulate starts threads of its own and joins them; their number changes no
// result.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "laboratory/replay.h"
#include "laboratory/simulation_watch.h"
#include "laboratory/statistics.h"
#include "laboratory/warm_start.h"

namespace mycc {

struct SimulationConfig {
  std::vector<std::string> strategies = {"evolutionary"};
  std::vector<int> budgets = {25, 50, 100, 200};  // evaluations, ascending
  // Ascending; empty: for each budget of evaluations, their mean cost in that space.
  std::vector<double> budgets_seconds;
  int seeds = 50;
  uint64_t first_seed = 0;
  int generation_size = 8;
  int lag = 0;         // generations in flight, unseen, when the next one is chosen
  bool noise = false;  // each search once more, with one random repetition as the time of an evaluation
  bool model = true;   // the default strategy has a learned scorer
  double target = 0.95;
  int threads = 1;
};
// InvalidArgument for unknown strategies and numbers out of range, with what was expected.
absl::Status CheckSimulation(const SimulationConfig& config);

// All strategies that can be simulated, the default one first.
std::vector<std::string> SimulatedStrategies();

struct SimulatedSpace {
  SpaceReplay replay;
  std::optional<WarmStart> warm;  // each search once more, with this
};

// The seeds' searches at one budget.
struct AtBudget {
  double budget = 0;         // evaluations, or seconds
  MedianBand fraction;       // of the optimum
  double low = 0, high = 0;  // between which 95 % of the seeds are
  double evaluations = 0;    // the mean number of them
  double invalid = 0;        // of these, the mean number of failures
};

// A point of a curve over evaluations or seconds.
struct CurvePoint {
  double at = 0;
  MedianBand fraction;
};

struct StrategyResult {
  std::string strategy;
  Manner manner;
  std::vector<AtBudget> by_evaluations, by_seconds;
  double reached = 0;  // the share of the seeds that reached the target
  // The first that reached it; infinite where half of the seeds, or for an end of the band more, did not.
  MedianBand evaluations_to_target, seconds_to_target;
  std::vector<CurvePoint> curve, seconds_curve;
};

struct SpaceResult {
  std::string name, device;
  std::string objective;  // empty: the time
  bool higher_is_better = false;
  double raw_size = 0;                          // before constraints
  std::optional<int64_t> legal_configurations;  // that the constraints leave, where these are known
  int parameters = 0, configurations = 0, failures = 0;
  double optimum_seconds = 0;  // or what stands for seconds (RecordedSpace)
  double mean_cost_seconds = 0;
  bool compile_times_known = false;
  double within_target = 0;               // the share of the configurations that reach the target
  double draws_to_target = 0;             // draws that find one of them with a probability of one half
  std::vector<BestOfDraws> exact_random;  // for each budget: uniform draws, known exactly
  std::vector<StrategyResult> results;    // by strategy, then manner
};

// Over all spaces.
struct OverallResult {
  std::string strategy;
  Manner manner;
  std::vector<double> by_evaluations, by_seconds;  // geometric means of the medians
};

struct SimulationResult {
  std::vector<SpaceResult> spaces;
  std::vector<OverallResult> overall;
};
absl::StatusOr<SimulationResult> Simulate(const SimulationConfig& config,
                                          const std::vector<SimulatedSpace>& spaces,
                                          const SimulationWatch& watch = nullptr);

}  // namespace mycc
