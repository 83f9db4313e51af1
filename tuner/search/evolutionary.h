// Evolutionary search, the default strategy. A population of the sketches' defaults, points from the log, the
// best measured points and random points is mutated and crossed under the cost model's predictions. A
// generation takes the best predicted points that differ from each other, neighbours of the best measured
// points (coordinate descent), and some random points. When past predictions were no better than chance, the
// search ignores them, and ranks a point by the measured points near it.
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
  Shares SharesOf(int generation, int visible, bool believe) const;

  void TakeStart(const Pool::Context& context, Picks* picks) const;
  void TakeDescent(int count, int visible, const Pool::Context& context, Picks* picks) const;
  void TakePredicted(int count, const Pool& pool, Picks* picks) const;
  void Evolve(int visible, const Pool::Context& context, Rng* rng, Pool* pool) const;

  std::vector<Point> history_;
};

}  // namespace mycc
