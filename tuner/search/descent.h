// Coordinate descent with restarts: from the best start points in turn, one decision after the other is
// changed while that makes the kernel faster; a point that no change of one decision improves ends a descent.
// Hooke and Jeeves, "Direct Search Solution of Numerical and Statistical Problems" (Journal of the ACM,
// 1961); Wright, "Coordinate descent algorithms" (Mathematical Programming, 2015).
//
// A generation follows the descents again from their beginnings. Where an outcome is missing, it proposes
// that point and goes on as if the point were slow; so the places of a generation are filled with what is
// most likely to be asked next.
#pragma once

#include <vector>

#include "tuner/search/measured.h"

namespace mycc {

class CoordinateDescent : public MeasuredSearch {
 public:
  using MeasuredSearch::MeasuredSearch;

 protected:
  void Fill(Turn* turn) override;

 private:
  struct Centre {
    Point point;
    double seconds;
  };
  // Seconds of a point; infinity for a failure and while they are unknown, which proposes the point.
  double Look(const Point& point, Turn* turn) const;
  void Descend(Centre centre, int number, Turn* turn) const;
  // The best of the points along one decision; false when that is the centre.
  bool MoveAlong(int decision, bool upwards, Centre* centre, Turn* turn) const;
  bool MoveToBest(const std::vector<Point>& points, Centre* centre, Turn* turn) const;
};

}  // namespace mycc
