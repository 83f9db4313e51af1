#include "tuner/search/prior_descent.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace mycc {
namespace {

constexpr int kSweeps = 4, kReach = 2;

struct Line {
  Point point;
  double seconds = std::numeric_limits<double>::infinity();
};

// Predictions of points, each made once.
class Predictions {
 public:
  explicit Predictions(const Pool::Context& context) : context_(context) {}

  void Add(const std::vector<Point>& points) {
    std::vector<std::pair<Point, Origin>> fresh;
    for (const Point& point : points) {
      if (seconds_.try_emplace(point, std::numeric_limits<double>::infinity()).second)
        fresh.emplace_back(point, Origin::kDescent);
    }
    Pool pool(context_);
    pool.Add(fresh);
    for (const Member& member : pool.members()) seconds_[member.point] = member.expected_seconds;
  }
  // Infinite where the point is refused, or does what another one does.
  double Of(const Point& point) const { return seconds_.at(point); }
  int size() const { return static_cast<int>(seconds_.size()); }

 private:
  const Pool::Context& context_;
  absl::flat_hash_map<Point, double> seconds_;
};

std::vector<Point> NeighboursIn(size_t decision, const Point& point, const Space& space) {
  std::vector<Point> neighbours;
  const Decision& moved = space.decisions[decision];
  for (int i = 0; i < static_cast<int>(moved.choices.size()); ++i) {
    const int distance = std::abs(i - point.choice[decision]);
    if (distance == 0 || (moved.ordered && distance > kReach)) continue;
    Point neighbour = point;
    neighbour.choice[decision] = i;
    if (space.Legal(neighbour.choice)) neighbours.push_back(std::move(neighbour));
  }
  return neighbours;
}

// All lines move in one decision. Returns whether one did.
bool Move(size_t decision, const std::vector<Sketch>& sketches, std::vector<Line>* lines,
          Predictions* predictions) {
  std::vector<std::vector<Point>> neighbours;
  std::vector<Point> all;
  for (const Line& line : *lines) {
    const Space& space = sketches[line.point.sketch].space;
    neighbours.push_back(decision < space.decisions.size() ? NeighboursIn(decision, line.point, space)
                                                           : std::vector<Point>());
    all.insert(all.end(), neighbours.back().begin(), neighbours.back().end());
  }
  predictions->Add(all);
  bool moved = false;
  for (size_t i = 0; i < lines->size(); ++i) {
    for (const Point& neighbour : neighbours[i]) {
      if (predictions->Of(neighbour) >= (*lines)[i].seconds) continue;
      (*lines)[i] = {neighbour, predictions->Of(neighbour)};
      moved = true;
    }
  }
  return moved;
}

}  // namespace

std::vector<Point> DescendPrior(const std::vector<Point>& starts, int most_predictions,
                                const std::vector<Sketch>& sketches, const Pool::Context& context) {
  Predictions predictions(context);
  predictions.Add(starts);
  std::vector<Line> lines;
  size_t decisions = 0;
  for (const Point& start : starts) {
    if (predictions.Of(start) == std::numeric_limits<double>::infinity()) continue;
    lines.push_back({start, predictions.Of(start)});
    decisions = std::max(decisions, sketches[start.sketch].space.decisions.size());
  }
  bool moved = true;
  for (int sweep = 0; sweep < kSweeps && moved; ++sweep) {
    moved = false;
    for (size_t d = 0; d < decisions && predictions.size() < most_predictions; ++d)
      moved |= Move(d, sketches, &lines, &predictions);
  }
  std::ranges::stable_sort(lines, [](const Line& a, const Line& b) { return a.seconds < b.seconds; });
  std::vector<Point> ends;
  for (const Line& line : lines) {
    if (std::ranges::find(ends, line.point) == ends.end()) ends.push_back(line.point);
  }
  return ends;
}

}  // namespace mycc
