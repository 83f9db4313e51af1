// Evolutionary search, the default strategy. A population of the sketches' defaults, points from the log, the
// best measured points and random points is mutated and crossed under the cost model's predictions. The first
// population has the best points of a descent under these predictions (prior_descent.h) besides. A
// generation takes the best predicted points that differ from each other, neighbours of the best measured
// points (coordinate descent), and some random points. When past predictions were no better than chance, the
// search ignores them, and takes the points of the greatest expected improvement under a model of the
// decisions (decision_search.h). Where nothing knows the code, that model chooses all but the first points.
#pragma once

#include <utility>
#include <vector>

#include "tuner/search/picks.h"
#include "tuner/search/strategy.h"

namespace mycc {

class EvolutionarySearch : public SearchStrategy {
 public:
  EvolutionarySearch(const SearchConfig& config, std::vector<Sketch> sketches,
                     const std::vector<Trace>& history, Scorer* scorer);

 protected:
  std::vector<ProposedPoint> Propose(int generation, int visible) override;

 private:
  // The number of a generation's places for each kind.
  struct Shares {
    int random = 0;
    int descent = 0;
  };
  std::vector<ProposedPoint> ProposeByDecisions(int generation, int visible, const Pool::Context& context,
                                                Rng* rng) const;
  Shares SharesOf(int generation, int visible, bool believe) const;

  std::vector<std::pair<Point, Origin>> Defaults() const;
  std::vector<std::pair<Point, Origin>> Starts() const;  // the rules' others
  // The best points before anything is measured.
  void AddPriorBest(const Pool::Context& context, Pool* pool) const;
  void TakeStart(const Pool::Context& context, Picks* picks) const;
  void TakeDescent(int count, int visible, const Pool::Context& context, Picks* picks) const;
  void TakePredicted(int count, const Pool& pool, Picks* picks) const;
  void Evolve(int visible, const Pool::Context& context, Rng* rng, Pool* pool) const;

  std::vector<Point> history_;
};

}  // namespace mycc
