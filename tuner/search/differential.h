// Differential evolution: each member of a population is challenged by a mixture of itself with a point that
// lies in the direction of the best and of the difference of two others; the faster one stays. Storn and
// Price, "Differential Evolution" (Journal of Global Optimization, 1997), in the form current-to-best/1/bin.
//
// Differences are of the places of ordered decisions, rounded at random; names come from one of the parents
// by crossover. A mixture that is illegal goes back towards the member that it challenges until it is legal.
#pragma once

#include <optional>
#include <vector>

#include "tuner/search/measured.h"

namespace mycc {

class DifferentialEvolution : public MeasuredSearch {
 public:
  using MeasuredSearch::MeasuredSearch;

 protected:
  void Fill(Turn* turn) override;

 private:
  struct Member {
    std::optional<Point> point;
    double seconds = 0;
  };
  // The members after the visible outcomes; candidate i challenges the member i modulo their number.
  std::vector<Member> Population(int visible) const;
  Point Challenger(const Point& target, const Point& best, const Point& plus, const Point& minus,
                   Rng* rng) const;
  bool TakeChallenger(const std::vector<Member>& population, size_t target, Turn* turn) const;
};

}  // namespace mycc
