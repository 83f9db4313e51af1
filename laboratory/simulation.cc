#include "laboratory/simulation.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "laboratory/trajectory.h"
#include "tuner/search/strategy.h"

namespace mycc {
namespace {

// Calls `work` with every number below `count`, in several threads. The error of the lowest number counts.
absl::Status InParallel(int count, int threads, const std::function<absl::Status(int)>& work) {
  std::vector<absl::Status> statuses(static_cast<size_t>(count));
  std::atomic<int> next = 0;
  const auto take = [&] {
    for (int i = next++; i < count; i = next++) statuses[static_cast<size_t>(i)] = work(i);
  };
  std::vector<std::thread> helpers;
  for (int t = 1; t < std::min(threads, count); ++t) helpers.emplace_back(take);
  take();
  for (std::thread& helper : helpers) helper.join();
  for (const absl::Status& status : statuses) MYCC_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

std::vector<double> SecondsOf(const SimulationConfig& config, const SpaceReplay& replay) {
  if (!config.budgets_seconds.empty()) return config.budgets_seconds;
  std::vector<double> seconds;
  for (const int budget : config.budgets) seconds.push_back(budget * replay.mean_cost_seconds());
  return seconds;
}

AtBudget Summarize(double budget, const std::vector<Trajectory>& runs,
                   const std::function<int(const Trajectory&)>& evaluations_of) {
  AtBudget at;
  at.budget = budget;
  std::vector<double> fractions, evaluations, invalid;
  for (const Trajectory& run : runs) {
    const int count = evaluations_of(run);
    fractions.push_back(run.FractionAfter(count));
    evaluations.push_back(count);
    invalid.push_back(run.FailuresWithin(count));
  }
  at.fraction = MedianWithBand(fractions);
  at.low = Quantile(fractions, 0.025);
  at.high = Quantile(fractions, 0.975);
  at.evaluations = Mean(evaluations);
  at.invalid = Mean(invalid);
  return at;
}

void FillCurves(const SimulationConfig& config, double most_seconds, const std::vector<Trajectory>& runs,
                StrategyResult* result) {
  constexpr int kSecondsPoints = 100;
  const auto band_at = [&](const std::function<int(const Trajectory&)>& evaluations_of) {
    std::vector<double> fractions;
    for (const Trajectory& run : runs) fractions.push_back(run.FractionAfter(evaluations_of(run)));
    return MedianWithBand(std::move(fractions));
  };
  for (int n = 1; n <= config.budgets.back(); ++n)
    result->curve.push_back({static_cast<double>(n), band_at([n](const Trajectory&) { return n; })});
  for (int i = 1; i <= kSecondsPoints; ++i) {
    const double seconds = most_seconds * i / kSecondsPoints;
    const auto within = [seconds](const Trajectory& run) { return run.EvaluationsWithin(seconds); };
    result->seconds_curve.push_back({seconds, band_at(within)});
  }
}

StrategyResult ResultOf(const SimulationConfig& config, const std::vector<double>& seconds,
                        const std::vector<Trajectory>& runs) {
  StrategyResult result;
  for (const int budget : config.budgets) {
    result.by_evaluations.push_back(Summarize(budget, runs, [budget](const Trajectory& run) {
      return std::min(budget, static_cast<int>(run.steps.size()));
    }));
  }
  for (const double budget : seconds) {
    result.by_seconds.push_back(
        Summarize(budget, runs, [budget](const Trajectory& run) { return run.EvaluationsWithin(budget); }));
  }
  std::vector<double> evaluations, spent;
  for (const Trajectory& run : runs) {
    const int first = run.EvaluationsTo(config.target);
    const bool reached = first > 0 && first <= config.budgets.back();
    result.reached += reached ? 1.0 / static_cast<double>(runs.size()) : 0;
    evaluations.push_back(reached ? first : std::numeric_limits<double>::infinity());
    spent.push_back(reached ? run.steps[static_cast<size_t>(first) - 1].spent_seconds
                            : std::numeric_limits<double>::infinity());
  }
  result.evaluations_to_target = MedianWithBand(evaluations);
  result.seconds_to_target = MedianWithBand(spent);
  FillCurves(config, seconds.back(), runs, &result);
  return result;
}

SpaceResult FactsOf(const SimulationConfig& config, const SpaceReplay& replay) {
  SpaceResult facts;
  facts.name = replay.space().name;
  facts.device = replay.space().device;
  facts.objective = replay.space().objective;
  facts.higher_is_better = replay.space().higher_is_better;
  facts.raw_size = replay.raw_size();
  facts.legal_configurations = replay.space().legal_configurations;
  facts.parameters = static_cast<int>(replay.space().parameters.size());
  facts.configurations = static_cast<int>(replay.space().configurations.size());
  facts.failures = replay.failures();
  facts.optimum_seconds = replay.optimum_seconds();
  facts.mean_cost_seconds = replay.mean_cost_seconds();
  facts.compile_times_known = replay.compile_times_known();
  const int good = static_cast<int>(
      std::ranges::count_if(replay.fractions(), [&](double f) { return f >= config.target; }));
  facts.within_target = static_cast<double>(good) / facts.configurations;
  facts.draws_to_target = DrawsToFind(facts.configurations, good);
  for (const int budget : config.budgets)
    facts.exact_random.push_back(ExpectedBest(replay.fractions(), std::min(budget, facts.configurations)));
  return facts;
}

absl::StatusOr<SpaceResult> SimulateSpace(const SimulationConfig& config, const SimulatedSpace& space,
                                          WatchedSimulation* watched) {
  SpaceResult result = FactsOf(config, space.replay);
  const std::vector<double> seconds = SecondsOf(config, space.replay);
  for (const bool warm : {false, true}) {
    if (warm && !space.warm) continue;
    std::unique_ptr<DecisionScorers> scorers;
    if (config.model) {
      MYCC_ASSIGN_OR_RETURN(scorers,
                            DecisionScorers::Make(space.replay.sketch(),
                                                  warm ? space.warm->prior : std::vector<PriorResult>()));
    }
    for (const std::string& strategy : config.strategies) {
      for (const bool noise : {false, true}) {
        if (noise && !config.noise) continue;
        watched->Begin(result.name, result.device, strategy, {warm, noise});
        std::vector<Trajectory> runs(static_cast<size_t>(config.seeds));
        MYCC_RETURN_IF_ERROR(InParallel(config.seeds, config.threads, [&](int i) -> absl::Status {
          RunConfig run;
          run.strategy = strategy;
          run.seed = config.first_seed + static_cast<uint64_t>(i);
          run.generation_size = config.generation_size;
          run.lag = config.lag;
          run.noise = noise;
          run.evaluations = config.budgets.back();
          run.cost_seconds = seconds.back();
          run.evaluated = [watched](int evaluations) { watched->Evaluated(evaluations); };
          // The baselines know no model, as where they come from.
          const bool scored = strategy == SearchConfig().strategy;
          MYCC_ASSIGN_OR_RETURN(
              runs[static_cast<size_t>(i)],
              RunSearch(run, space.replay, warm ? space.warm->history : std::vector<Trace>(),
                        scored ? scorers.get() : nullptr));
          watched->Ended();
          return absl::OkStatus();
        }));
        StrategyResult& added = result.results.emplace_back(ResultOf(config, seconds, runs));
        added.strategy = strategy;
        added.manner = {warm, noise};
      }
    }
  }
  return result;
}

// Geometric means over the spaces, of what was done in each of them.
std::vector<OverallResult> OverallOf(const std::vector<SpaceResult>& spaces) {
  std::vector<OverallResult> overall;
  for (const StrategyResult& first : spaces[0].results) {
    std::vector<const StrategyResult*> same;
    for (const SpaceResult& space : spaces) {
      for (const StrategyResult& result : space.results) {
        if (result.strategy == first.strategy && result.manner == first.manner) same.push_back(&result);
      }
    }
    if (same.size() != spaces.size()) continue;
    OverallResult& added = overall.emplace_back(OverallResult{first.strategy, first.manner, {}, {}});
    const auto mean_of = [&](std::vector<AtBudget> StrategyResult::*budgets, size_t b) {
      std::vector<double> medians;
      for (const StrategyResult* result : same) medians.push_back((result->*budgets)[b].fraction.median);
      return GeometricMean(medians);
    };
    for (size_t b = 0; b < first.by_evaluations.size(); ++b)
      added.by_evaluations.push_back(mean_of(&StrategyResult::by_evaluations, b));
    for (size_t b = 0; b < first.by_seconds.size(); ++b)
      added.by_seconds.push_back(mean_of(&StrategyResult::by_seconds, b));
  }
  return overall;
}

// All searches that a simulation makes.
int64_t SearchesOf(const SimulationConfig& config, const std::vector<SimulatedSpace>& spaces) {
  int64_t manners = 0;
  for (const SimulatedSpace& space : spaces) manners += (space.warm ? 2 : 1) * (config.noise ? 2 : 1);
  return manners * std::ssize(config.strategies) * config.seeds;
}

absl::Status Unsuitable(const std::string& what, const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrCat("simulation: ", what, "; expected ", expected));
}

template <typename Number>
bool Ascending(const std::vector<Number>& numbers) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!(numbers[i] > (i == 0 ? Number(0) : numbers[i - 1])) || !(numbers[i] < Number(1e9))) return false;
  }
  return true;
}

}  // namespace

std::vector<std::string> SimulatedStrategies() {
  std::vector<std::string> names;
  for (const char* name :
       {"evolutionary", "bayesian", "descent", "annealing", "differential", "random", "grid"}) {
    if (CheckStrategy(name).ok()) names.emplace_back(name);
  }
  return names;
}

absl::Status CheckSimulation(const SimulationConfig& config) {
  const std::vector<std::string> known = SimulatedStrategies();
  for (const std::string& strategy : config.strategies) {
    if (std::ranges::find(known, strategy) == known.end())
      return Unsuitable(absl::StrCat("unknown strategy \"", strategy, "\""), absl::StrJoin(known, ", "));
    if (std::ranges::count(config.strategies, strategy) > 1)
      return Unsuitable(absl::StrCat("strategy ", strategy, " twice"), "each one once");
  }
  if (config.strategies.empty()) return Unsuitable("no strategy", "at least one");
  if (config.budgets.empty() || !Ascending(config.budgets))
    return Unsuitable(absl::StrCat("budgets ", absl::StrJoin(config.budgets, ",")),
                      "numbers of evaluations, at least 1, ascending");
  if (!Ascending(config.budgets_seconds))
    return Unsuitable(absl::StrCat("budgets of ", absl::StrJoin(config.budgets_seconds, ","), " s"),
                      "positive numbers, ascending");
  if (config.seeds < 1 || config.generation_size < 1 || config.lag < 0 || config.threads < 1)
    return Unsuitable(absl::StrCat(config.seeds, " seeds, generations of ", config.generation_size, ", ",
                                   config.lag, " in flight, ", config.threads, " threads"),
                      "at least 1, 1, 0 and 1");
  if (!(config.target > 0 && config.target <= 1))
    return Unsuitable(absl::StrCat("target ", config.target),
                      "a fraction of the optimum, above 0, at most 1");
  return absl::OkStatus();
}

absl::StatusOr<SimulationResult> Simulate(const SimulationConfig& config,
                                          const std::vector<SimulatedSpace>& spaces,
                                          const SimulationWatch& watch) {
  MYCC_RETURN_IF_ERROR(CheckSimulation(config));
  if (spaces.empty()) return Unsuitable("no recorded space", "at least one");
  SimulationResult result;
  WatchedSimulation watched(watch, SearchesOf(config, spaces));
  for (const SimulatedSpace& space : spaces) {
    MYCC_ASSIGN_OR_RETURN(SpaceResult of_space, SimulateSpace(config, space, &watched));
    result.spaces.push_back(std::move(of_space));
  }
  result.overall = OverallOf(result.spaces);
  return result;
}

}  // namespace mycc
