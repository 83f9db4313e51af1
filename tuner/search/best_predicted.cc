#include "tuner/search/best_predicted.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "tuner/search/rng.h"
#include "tuner/search/sampler.h"

namespace mycc {
namespace {

using Points = std::vector<std::pair<Point, Origin>>;

class PredictedSearch {
 public:
  PredictedSearch(const std::vector<Sketch>& sketches, Scorer* scorer, const PredictedSearchConfig& config)
      : config_(config),
        sketches_(sketches),
        context_{.sketches = sketches,
                 .ledger = ledger_,
                 .scorer = scorer,
                 .unranked_order = [](const Point&) { return std::numeric_limits<double>::infinity(); },
                 .refuse = [](const std::string&) {},
                 .dead = &dead_},
        sampler_(sketches),
        rng_(config.seed),
        pool_(context_) {}

  std::vector<Member> Run(const std::vector<Trace>& history) {
    Begin(history);
    for (int step = 0; step < config_.evolution_steps && !pool_.members().empty(); ++step) Evolve();
    Descend();
    return pool_.members();
  }

 private:
  void Begin(const std::vector<Trace>& history) {
    Points start;
    for (size_t s = 0; s < sketches_.size(); ++s)
      start.emplace_back(Point{static_cast<int>(s), sketches_[s].default_choice}, Origin::kDefault);
    for (const Trace& trace : history) {
      if (std::optional<Point> point = Refit(trace, sketches_))
        start.emplace_back(*std::move(point), Origin::kHistory);
    }
    while (static_cast<int>(start.size()) < config_.population)
      start.emplace_back(sampler_.Random(&rng_), Origin::kRandom);
    pool_.Add(start);
  }

  // The best of a few drawn members: they are sorted.
  const Point& Parent() {
    constexpr int kDraws = 4;
    int winner = std::numeric_limits<int>::max();
    for (int i = 0; i < kDraws; ++i)
      winner = std::min(winner, rng_.Below(static_cast<int>(pool_.members().size())));
    return pool_.members()[winner].point;
  }

  void Evolve() {
    constexpr double kCrossover = 0.3;
    Points children;
    for (int i = 0; i < config_.population; ++i) {
      const Point& parent = Parent();
      std::optional<Point> mixed;
      if (rng_.Chance(kCrossover)) mixed = sampler_.Crossover(parent, Parent(), &rng_);
      if (mixed) {
        children.emplace_back(*std::move(mixed), Origin::kCrossover);
      } else {
        children.emplace_back(sampler_.Mutate(parent, &rng_), Origin::kMutation);
      }
    }
    pool_.Add(children);
    pool_.KeepFastest(config_.population);
  }

  // From each centre to its best neighbour, as long as that is expected to be faster.
  void Descend() {
    std::vector<Member> centres(pool_.members());
    if (static_cast<int>(centres.size()) > config_.centres)
      centres.erase(centres.begin() + config_.centres, centres.end());
    for (Member& centre : centres) {
      for (int step = 0; step < config_.descent_steps; ++step) {
        Points neighbours;
        for (Point& point : sampler_.Neighbours(centre.point))
          neighbours.emplace_back(std::move(point), Origin::kDescent);
        Pool around(context_);
        around.Add(neighbours);
        pool_.Add(neighbours);
        if (around.members().empty() || around.members()[0].expected_seconds >= centre.expected_seconds)
          break;
        centre = around.members()[0];
      }
    }
    pool_.KeepFastest(config_.population);
  }

  const PredictedSearchConfig config_;
  const std::vector<Sketch>& sketches_;
  const SearchLedger ledger_;  // nothing was measured
  absl::flat_hash_set<Point> dead_;
  const Pool::Context context_;
  const Sampler sampler_;
  Rng rng_;
  Pool pool_;
};

}  // namespace

std::vector<Member> BestPredicted(const std::vector<Sketch>& sketches, const std::vector<Trace>& history,
                                  Scorer* scorer, const PredictedSearchConfig& config) {
  if (sketches.empty()) return {};
  return PredictedSearch(sketches, scorer, config).Run(history);
}

}  // namespace mycc
