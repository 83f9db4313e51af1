// Simulated annealing: a walk from neighbour to neighbour that takes every faster one, and a slower one with
// a probability that falls with the time lost and with the temperature. Kirkpatrick, Gelatt and Vecchi,
// "Optimization by Simulated Annealing" (Science, 1983).
//
// The number of trials is not known, so cycles of cooling follow each other, each twice as long as the one
// before; each begins at the fastest point. Several neighbours of a walk are measured at a time: each is
// judged against the point where the walk is when its outcome is seen. Wide generations have several walks.
#pragma once

#include <vector>

#include "tuner/search/measured.h"

namespace mycc {

class SimulatedAnnealing : public MeasuredSearch {
 public:
  using MeasuredSearch::MeasuredSearch;

 protected:
  void Fill(Turn* turn) override;

 private:
  struct Walk {
    std::optional<Point> at;
    double seconds = 0;
  };
  int NumWalks() const;
  // The state of each walk after the visible outcomes, in the order of the candidates.
  std::vector<Walk> Follow(int visible) const;
  void Step(const Walk& walk, Turn* turn) const;
};

}  // namespace mycc
