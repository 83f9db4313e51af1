// The base of strategies that learn from points and measured times alone: descent, annealing, differential
// evolution and the Bayesian search. Predictions are recorded, not followed, but points that the scorer
// refuses are not proposed. A generation that a strategy does not fill is filled at random.
#pragma once

#include <vector>

#include "tuner/search/legal_moves.h"
#include "tuner/search/picks.h"
#include "tuner/search/seen_points.h"
#include "tuner/search/strategy.h"

namespace mycc {

class MeasuredSearch : public SearchStrategy {
 public:
  MeasuredSearch(const SearchConfig& config, std::vector<Sketch> sketches, const std::vector<Trace>& history,
                 Scorer* scorer);

 protected:
  // A generation under construction.
  struct Turn {
    const int generation, visible;
    const SeenPoints seen;
    const Pool::Context context;
    Rng rng;
    Picks picks;
  };

  // Takes points into turn->picks, as a function of the turn and of what ledger() shows to it.
  virtual void Fill(Turn* turn) = 0;
  std::vector<ProposedPoint> Propose(int generation, int visible) final;

  // Proposes a point. False when it is not new, is refused, or the generation is full.
  bool Take(const Point& point, Origin origin, Turn* turn) const;
  // The points where a search begins: the defaults, those of the log, and then, without end, random ones.
  Point Start(int number) const;
  Origin OriginOfStart(int number) const;
  // The number of leading start points that earlier generations proposed or were refused.
  int StartsMade(const Turn& turn) const;
  // Takes start points from `number` on until the generation has `size` candidates or enough failed to be
  // new.
  void TakeStarts(int number, int size, Turn* turn) const;
  // The number of a turn's next candidate, counted over all generations.
  int64_t NextOrdinal(const Turn& turn) const { return ledger().num_candidates() + turn.picks.size(); }

  const LegalMoves& moves() const { return moves_; }

 private:
  std::vector<Point> history_;
  const LegalMoves moves_;
};

}  // namespace mycc
