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

// The legal point nearest to what the trace names: ordered decisions take the choice nearest by ratio, others
// an equal choice or the default's; decisions that the trace lacks take the default's. Illegal combinations
// fall back to the default, decision by decision from the last. nullopt when no sketch has the trace's name.
std::optional<Point> Refit(const Trace& trace, const std::vector<Sketch>& sketches);

}  // namespace mycc
