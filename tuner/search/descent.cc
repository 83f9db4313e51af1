#include "tuner/search/descent.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace mycc {
namespace {

constexpr int kDescentStarts = 8;  // before the first descent

}  // namespace

void CoordinateDescent::Fill(Turn* turn) {
  const int made = StartsMade(*turn);
  if (made < kDescentStarts) TakeStarts(made, kDescentStarts - made, turn);
  std::vector<std::pair<double, int>> starts;  // the fastest first
  for (int number = 0; number < made; ++number) {
    const auto seconds = turn->seen.Seconds(Start(number));
    if (seconds && *seconds < std::numeric_limits<double>::infinity()) starts.emplace_back(*seconds, number);
  }
  std::ranges::sort(starts);
  for (const auto& [seconds, number] : starts) {
    if (turn->picks.full()) return;
    Descend({Start(number), seconds}, number, turn);
  }
  TakeStarts(std::max(made, kDescentStarts), wanted(), turn);
}

double CoordinateDescent::Look(const Point& point, Turn* turn) const {
  const auto seconds = turn->seen.Seconds(point);
  if (!seconds) Take(point, Origin::kDescent, turn);
  return seconds.value_or(std::numeric_limits<double>::infinity());
}

void CoordinateDescent::Descend(Centre centre, int number, Turn* turn) const {
  Rng rng(config_.seed, (uint64_t{2} << 32) + static_cast<uint64_t>(number));
  const int decisions = static_cast<int>(centre.point.choice.size());
  std::vector<int> order(decisions);
  std::iota(order.begin(), order.end(), 0);
  for (int i = decisions - 1; i > 0; --i) std::swap(order[i], order[rng.Below(i + 1)]);
  const bool upwards = rng.Chance(0.5);
  int tried = 0;  // decisions in a row that cannot be improved
  for (int i = 0; tried < decisions && !turn->picks.full(); ++i) {
    const bool moved = MoveAlong(order[i % decisions], upwards, &centre, turn);
    tried = moved ? 1 : tried + 1;
    if (tried == decisions && MoveToBest(moves().Around(centre.point), &centre, turn)) tried = 0;
  }
}

bool CoordinateDescent::MoveAlong(int decision, bool upwards, Centre* centre, Turn* turn) const {
  const std::vector<int> line = moves().Line(centre->point, decision);
  Point point = centre->point;
  if (!sketches()[point.sketch].space.decisions[decision].ordered) {
    std::vector<Point> points;
    for (const int choice : line) {
      point.choice[decision] = choice;
      if (point != centre->point) points.push_back(point);
    }
    return MoveToBest(points, centre, turn);
  }
  const int size = static_cast<int>(line.size());
  for (const int step : {upwards ? 1 : -1, upwards ? -1 : 1}) {
    bool moved = false;
    int at = static_cast<int>(std::ranges::find(line, centre->point.choice[decision]) - line.begin());
    for (at += step; at >= 0 && at < size; at += step) {
      point.choice[decision] = line[at];
      const double seconds = Look(point, turn);
      if (seconds >= centre->seconds) break;
      *centre = {point, seconds};
      moved = true;
    }
    if (moved) return true;
  }
  return false;
}

bool CoordinateDescent::MoveToBest(const std::vector<Point>& points, Centre* centre, Turn* turn) const {
  bool moved = false;
  for (const Point& point : points) {
    const double seconds = Look(point, turn);
    if (seconds >= centre->seconds) continue;
    *centre = {point, seconds};
    moved = true;
  }
  return moved;
}

}  // namespace mycc
