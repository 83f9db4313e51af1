#include "tuner/space/refit.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace mycc {
namespace {

constexpr int kMostTried = 4096;  // combinations, the nearest ones

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
  const auto it = std::ranges::find(decision.choices, value);
  if (it == decision.choices.end()) return std::nullopt;
  return static_cast<int>(it - decision.choices.begin());
}

// Tile sizes compare by ratio: 24 is as far from 48 as from 12.
double Distance(int64_t a, int64_t b) {
  if (a > 0 && b > 0) return std::abs(std::log(static_cast<double>(a) / static_cast<double>(b)));
  return std::abs(static_cast<double>(a - b));
}

// The choices of a decision by their distance to what is wanted.
struct Ranked {
  std::vector<int> choices;
  std::vector<double> distances;
};

Ranked Rank(const Decision& decision, std::optional<int64_t> value, int default_choice) {
  constexpr double kOfDefault = 0.5;  // the weight of what nobody asked for
  const bool is_named = value && (decision.ordered || IndexOf(decision, *value));
  const int64_t wanted = is_named ? *value : decision.choices[default_choice];
  std::vector<std::pair<double, int>> order;
  for (size_t i = 0; i < decision.choices.size(); ++i) {
    const double apart = decision.choices[i] == wanted ? 0
                         : decision.ordered            ? Distance(decision.choices[i], wanted)
                                                       : 1;
    order.emplace_back(is_named ? apart : kOfDefault * apart, static_cast<int>(i));
  }
  std::ranges::sort(order);
  Ranked ranked;
  for (const auto& [distance, choice] : order) {
    ranked.choices.push_back(choice);
    ranked.distances.push_back(distance);
  }
  return ranked;
}

// Enumerates combinations of ranks by the sum of their distances; equal sums in the order of the ranks.
class ByDistance {
 public:
  explicit ByDistance(const std::vector<Ranked>& ranked) : ranked_(ranked) {
    Combination first{0, std::vector<int>(ranked.size(), 0), 0};
    for (const Ranked& decision : ranked) first.distance += decision.distances[0];
    waiting_.insert(std::move(first));
  }

  // The next one; nullopt after the last.
  std::optional<std::vector<int>> Next() {
    if (waiting_.empty()) return std::nullopt;
    const Combination next = std::move(waiting_.extract(waiting_.begin()).value());
    // Each combination follows from one other alone: from that with one rank less in its last raised
    // decision.
    for (size_t d = next.last_raised; d < ranked_.size(); ++d) {
      const size_t rank = static_cast<size_t>(next.ranks[d]) + 1;
      if (rank == ranked_[d].choices.size()) continue;
      Combination raised = next;
      ++raised.ranks[d];
      raised.last_raised = d;
      raised.distance += ranked_[d].distances[rank] - ranked_[d].distances[rank - 1];
      waiting_.insert(std::move(raised));
    }
    return next.ranks;
  }

 private:
  struct Combination {
    double distance;
    std::vector<int> ranks;
    size_t last_raised;
    bool operator<(const Combination& other) const {
      return std::tie(distance, ranks) < std::tie(other.distance, other.ranks);
    }
  };

  const std::vector<Ranked>& ranked_;
  std::set<Combination> waiting_;
};

// From the default, each decision in turn goes as near to what is wanted as the others allow.
Choice Approach(const Sketch& sketch, const std::vector<Ranked>& ranked) {
  constexpr int kSweeps = 3;
  Choice choice = sketch.default_choice;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (size_t d = 0; d < ranked.size(); ++d) {
      const int before = choice[d];
      for (const int nearer : ranked[d].choices) {
        choice[d] = nearer;
        if (nearer == before || sketch.space.Legal(choice)) break;
      }
    }
  }
  return choice;
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
  std::vector<Ranked> ranked;
  for (size_t i = 0; i < sketch.space.decisions.size(); ++i) {
    const Decision& decision = sketch.space.decisions[i];
    ranked.push_back(Rank(decision, DecisionOf(trace, decision.name), sketch.default_choice[i]));
  }
  ByDistance by_distance(ranked);
  for (int tried = 0; tried < kMostTried; ++tried) {
    const std::optional<std::vector<int>> ranks = by_distance.Next();
    if (!ranks) break;
    Point point{*s, {}};
    for (size_t i = 0; i < ranked.size(); ++i) point.choice.push_back(ranked[i].choices[(*ranks)[i]]);
    if (sketch.space.Legal(point.choice)) return point;
  }
  return Point{*s, Approach(sketch, ranked)};
}

}  // namespace mycc
