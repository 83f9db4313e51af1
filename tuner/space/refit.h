// Finds the point of a sketch from a trace's decisions. So a record warm-starts a search, and a neighbour's
// decisions are fitted to another shape. It reads the decisions of the trace, never its steps. Pure
// functions.
#pragma once

#include <optional>
#include <vector>

#include "codegen/schedule/trace.h"
#include "tuner/space/space.h"

namespace mycc {

// A choice in one of several sketches.
struct Point {
  int sketch = 0;
  Choice choice;

  bool operator==(const Point&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const Point& point) {
    return H::combine(std::move(h), point.sketch, point.choice);
  }
};

// The point whose sketch and decisions the trace names, all of them and exactly; nullopt when there is none.
std::optional<Point> PointOf(const Trace& trace, const std::vector<Sketch>& sketches);

// The legal point nearest to what the trace names. The distance is the sum over the decisions: for ordered
// ones the logarithm of the ratio to the named value, for others 1 unless the choice is the named one.
// Decisions that the trace lacks, or whose unordered value is no choice here, want the default's, half as
// much. Points are tried by their distance; where thousands of the nearest are illegal, the point is the one
// that is reached from the default, which is legal. nullopt when no sketch has the trace's name.
std::optional<Point> Refit(const Trace& trace, const std::vector<Sketch>& sketches);

}  // namespace mycc
