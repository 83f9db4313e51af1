// Legal points near others and legal points at random, also in spaces whose constraint leaves few. Where
// drawing finds no legal point, the legal points of a space that is small enough are listed once. Thread
// rule: thread-compatible; the sketches must outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tuner/search/rng.h"
#include "tuner/space/refit.h"

namespace mycc {

class LegalMoves {
 public:
  explicit LegalMoves(const std::vector<Sketch>& sketches);

  // Every sketch equally likely, then its legal points: equally likely too, unless the space is too large to
  // be listed and one point in thousands is legal.
  Point Random(Rng* rng) const;
  // The legal choices of one decision while the others stay, ascending, the point's own among them.
  std::vector<int> Line(const Point& point, int decision) const;
  // The points that differ in one decision: ordered ones by one or two places, others in any way. Where there
  // are fewer than kFew, also those that differ in two decisions, or else the nearest ones of the list. Empty
  // for a space of one point.
  std::vector<Point> Around(const Point& point) const;
  // `target` when it is legal, otherwise a legal point on a way from it to the legal point `from`, as far
  // from `from` as was found. `from` itself where there is no other.
  Point Fit(const Point& target, const Point& from, Rng* rng) const;
  // The number of legal points of all sketches when it is at most `limit` and the spaces are small enough to
  // be listed; nullopt otherwise.
  std::optional<int64_t> CountUpTo(int64_t limit) const;
  // All legal points. REQUIRES: CountUpTo() gave a number.
  std::vector<Point> All() const;

  // The steps from one point to another of the same sketch: places of ordered decisions, 2 for another name.
  int Distance(const Point& a, const Point& b) const;

 private:
  static constexpr int kFew = 2;
  struct Listed {
    bool is_listed = false;
    std::vector<int64_t> places;  // of legal points, in mixed radix, the last decision fastest
  };

  const Space& SpaceOf(const Point& point) const { return sketches_[point.sketch].space; }
  // Null when the space is too large.
  const std::vector<int64_t>* List(int sketch) const;
  Choice ChoiceAt(int sketch, int64_t place) const;
  // The legal points nearest to `point`, apart from itself and `except`.
  std::vector<Point> Nearest(const Point& point, const Point& except) const;

  const std::vector<Sketch>& sketches_;
  mutable std::vector<Listed> listed_;
};

}  // namespace mycc
