// The moves of a search in the spaces of its sketches: draw, mutate, cross, list neighbours, enumerate. Every
// returned point satisfies its space's constraint. Pure apart from the generator that is passed in; the
// sketches must outlive the sampler.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "tuner/search/rng.h"
#include "tuner/space/refit.h"

namespace mycc {

class Sampler {
 public:
  explicit Sampler(const std::vector<Sketch>& sketches) : sketches_(sketches) {}

  // Every sketch equally likely, then every decision's choices, as far as the constraint allows.
  Point Random(Rng* rng) const;
  // One decision changed, sometimes several: ordered ones mostly to a near choice. The same point when
  // nothing else is legal.
  Point Mutate(const Point& point, Rng* rng) const;
  // Each decision from one of two parents; nullopt for parents of different sketches, or when no legal
  // mixture was found.
  std::optional<Point> Crossover(const Point& a, const Point& b, Rng* rng) const;
  // The points that differ in one decision: ordered ones by one or two places, others in any way. In the
  // order of the decisions.
  std::vector<Point> Neighbours(const Point& point) const;

  // Points of all sketches before constraints, at most 2^62.
  int64_t size() const;
  // Calls `visit` on legal points in a fixed order that spreads any prefix over the whole, beginning at place
  // `start`; at most `limit` places are looked at. Stops when `visit` returns false. Returns the places
  // looked at.
  int64_t Enumerate(int64_t start, int64_t limit, const std::function<bool(const Point&)>& visit) const;

 private:
  int64_t SketchSize(int sketch) const;
  Point At(int64_t number) const;
  const Space& SpaceOf(const Point& point) const { return sketches_[point.sketch].space; }

  const std::vector<Sketch>& sketches_;
};

}  // namespace mycc
