#include "tuner/space/refit.h"

#include <algorithm>
#include <cmath>

namespace mycc {
namespace {

std::optional<int64_t> DecisionOf(const Trace& trace, const std::string& name) {
  for (const auto& [decision, value] : trace.decisions) {
    if (decision == name) return value;
  }
  return std::nullopt;
}

std::optional<int> SketchOf(const Trace& trace, const std::vector<Sketch>& sketches) {
  for (size_t s = 0; s < sketches.size(); ++s) {
    if (!trace.sketch.empty() && sketches[s].name == trace.sketch) return static_cast<int>(s);
  }
  return std::nullopt;
}

std::optional<int> IndexOf(const Decision& decision, int64_t value) {
  const auto it = std::find(decision.choices.begin(), decision.choices.end(), value);
  if (it == decision.choices.end()) return std::nullopt;
  return static_cast<int>(it - decision.choices.begin());
}

// Tile sizes compare by ratio: 24 is as far from 48 as from 12.
double Distance(int64_t a, int64_t b) {
  if (a > 0 && b > 0) return std::abs(std::log(static_cast<double>(a) / static_cast<double>(b)));
  return std::abs(static_cast<double>(a - b));
}

int Nearest(const Decision& decision, int64_t value, int fallback) {
  if (const auto exact = IndexOf(decision, value)) return *exact;
  if (!decision.ordered) return fallback;
  int nearest = 0;
  for (size_t i = 1; i < decision.choices.size(); ++i) {
    if (Distance(decision.choices[i], value) < Distance(decision.choices[nearest], value))
      nearest = static_cast<int>(i);
  }
  return nearest;
}

}  // namespace

std::optional<Point> PointOf(const Trace& trace, const std::vector<Sketch>& sketches) {
  const auto s = SketchOf(trace, sketches);
  if (!s) return std::nullopt;
  const Space& space = sketches[*s].space;
  if (trace.decisions.size() != space.decisions.size()) return std::nullopt;
  Point point{*s, {}};
  for (const Decision& decision : space.decisions) {
    const auto value = DecisionOf(trace, decision.name);
    const auto index = value ? IndexOf(decision, *value) : std::nullopt;
    if (!index) return std::nullopt;
    point.choice.push_back(*index);
  }
  return point;
}

std::optional<Point> Refit(const Trace& trace, const std::vector<Sketch>& sketches) {
  const auto s = SketchOf(trace, sketches);
  if (!s) return std::nullopt;
  const Sketch& sketch = sketches[*s];
  Point point{*s, sketch.default_choice};
  for (size_t i = 0; i < sketch.space.decisions.size(); ++i) {
    const Decision& decision = sketch.space.decisions[i];
    if (const auto value = DecisionOf(trace, decision.name)) {
      point.choice[i] = Nearest(decision, *value, sketch.default_choice[i]);
    }
  }
  for (size_t i = point.choice.size(); i-- > 0 && !sketch.space.Legal(point.choice);) {
    point.choice[i] = sketch.default_choice[i];
  }
  return point;
}

}  // namespace mycc
