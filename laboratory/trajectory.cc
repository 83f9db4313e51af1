#include "laboratory/trajectory.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "tuner/cost/forest.h"
#include "tuner/search/strategy.h"

namespace mycc {
namespace {

constexpr int kMostTimes = 4;

// Answers generations, and keeps what looks best.
class Answering {
 public:
  Answering(const RunConfig& config, const SpaceReplay& replay) : config_(config), replay_(replay) {}

  std::vector<Outcome> Answer(const std::vector<Candidate>& candidates) {
    std::vector<Outcome> outcomes;
    for (const Candidate& candidate : candidates) {
      const std::optional<int> number = replay_.NumberOf(candidate.point.choice);
      MYCC_CHECK(number.has_value()) << "a point outside the space:\n" << candidate.trace;
      // The draw belongs to the seed and the configuration, so that strategies meet the same noise.
      Rng noise(config_.seed ^ 0x6e6f697365, static_cast<uint64_t>(*number));
      const Evaluation evaluation = replay_.Measure(*number, config_.noise ? &noise : nullptr);
      Take(evaluation);
      Outcome& outcome = outcomes.emplace_back();
      outcome.generation = candidate.generation;
      outcome.index = candidate.index;
      outcome.seconds = evaluation.seconds;
      if (!evaluation.seconds) outcome.failure = FailureOf(*number);
    }
    return outcomes;
  }

  bool Spent() const {
    const int done = static_cast<int>(trajectory_.steps.size());
    if (done < config_.evaluations) return false;
    return trajectory_.steps.back().spent_seconds >= config_.cost_seconds ||
           done >= kMostTimes * config_.evaluations;
  }
  // How many evaluations may follow.
  int Left() const {
    const int done = static_cast<int>(trajectory_.steps.size());
    return (done < config_.evaluations ? config_.evaluations : kMostTimes * config_.evaluations) - done;
  }
  Trajectory& trajectory() { return trajectory_; }

 private:
  void Take(const Evaluation& evaluation) {
    const double spent = trajectory_.steps.empty() ? 0 : trajectory_.steps.back().spent_seconds;
    if (evaluation.seconds && *evaluation.seconds < best_seconds_) {
      best_seconds_ = *evaluation.seconds;
      best_fraction_ = replay_.FractionOf(evaluation.configuration);
    }
    trajectory_.steps.push_back(
        {evaluation.configuration, !evaluation.seconds, spent + evaluation.cost_seconds, best_fraction_});
  }
  std::string FailureOf(int number) const {
    const std::string& failure = replay_.space().configurations[static_cast<size_t>(number)].failure;
    return failure.empty() ? "failed" : failure;
  }

  const RunConfig& config_;
  const SpaceReplay& replay_;
  Trajectory trajectory_;
  double best_seconds_ = std::numeric_limits<double>::infinity();
  double best_fraction_ = 0;
};

}  // namespace

double Trajectory::FractionAfter(int evaluations) const {
  const size_t count = std::min(steps.size(), static_cast<size_t>(std::max(0, evaluations)));
  return count == 0 ? 0 : steps[count - 1].fraction;
}

int Trajectory::EvaluationsWithin(double seconds) const {
  const auto after = std::ranges::upper_bound(steps, seconds, {}, &Evaluated::spent_seconds);
  return static_cast<int>(after - steps.begin());
}

int Trajectory::FailuresWithin(int evaluations) const {
  const auto count = std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(steps.size()), evaluations);
  return static_cast<int>(
      std::count_if(steps.begin(), steps.begin() + count, [](const Evaluated& step) { return step.failed; }));
}

int Trajectory::EvaluationsTo(double fraction) const {
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].fraction >= fraction) return static_cast<int>(i) + 1;
  }
  return 0;
}

absl::StatusOr<Trajectory> RunSearch(const RunConfig& config, const SpaceReplay& replay,
                                     const std::vector<Trace>& history, const ScorerMaker* scorers) {
  const std::unique_ptr<LearningScorer> scorer = scorers == nullptr ? nullptr : scorers->Make(config.seed);
  SearchConfig search_config;
  search_config.strategy = config.strategy;
  search_config.seed = config.seed;
  search_config.generation_size = config.generation_size;
  Forest forest;  // of Bayesian searches
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<SearchStrategy> search,
                        MakeSearchStrategy(search_config, {replay.sketch()}, history, scorer.get(), &forest));
  Answering answering(config, replay);
  int learned = 0;  // generations
  while (!answering.Spent()) {
    const int visible = std::max(0, search->ledger().generations() - config.lag);
    for (; scorer != nullptr && learned < visible; ++learned)
      MYCC_RETURN_IF_ERROR(scorer->Learn(search->ledger().generation(learned)));
    MYCC_ASSIGN_OR_RETURN(const std::vector<Candidate> candidates, search->Ask(visible, answering.Left()));
    if (candidates.empty()) {
      answering.trajectory().exhausted = true;
      break;
    }
    MYCC_RETURN_IF_ERROR(search->Tell(answering.Answer(candidates)));
    if (config.evaluated) config.evaluated(static_cast<int>(candidates.size()));
  }
  return std::move(answering.trajectory());
}

}  // namespace mycc
