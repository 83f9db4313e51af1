#include "tuner/search/legal_moves.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "tuner/search/sampler.h"

namespace mycc {
namespace {

constexpr double kMostPlaces = 1 << 18;  // of a space that is listed

std::vector<int> ShuffledDecisions(size_t count, Rng* rng) {
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = count; i-- > 1;) std::swap(order[i], order[rng->Below(static_cast<int>(i + 1))]);
  return order;
}

}  // namespace

LegalMoves::LegalMoves(const std::vector<Sketch>& sketches) : sketches_(sketches), listed_(sketches.size()) {}

const std::vector<int64_t>* LegalMoves::List(int sketch) const {
  const Space& space = sketches_[sketch].space;
  // Places of a listed space are those in its list.
  if (space.size() > kMostPlaces && (space.listed == nullptr || space.listed->size() > kMostPlaces))
    return nullptr;
  Listed& listed = listed_[sketch];
  if (!listed.is_listed) {
    listed.is_listed = true;
    if (space.listed != nullptr) {
      listed.places.resize(space.listed->size());
      std::iota(listed.places.begin(), listed.places.end(), int64_t{0});
      return &listed.places;
    }
    const int64_t places = static_cast<int64_t>(space.size());
    for (int64_t place = 0; place < places; ++place) {
      if (space.Legal(ChoiceAt(sketch, place))) listed.places.push_back(place);
    }
  }
  return &listed.places;
}

Choice LegalMoves::ChoiceAt(int sketch, int64_t place) const {
  const Space& space = sketches_[sketch].space;
  if (space.listed != nullptr) return (*space.listed)[static_cast<size_t>(place)];
  const std::vector<Decision>& decisions = space.decisions;
  Choice choice(decisions.size());
  for (size_t d = decisions.size(); d-- > 0;) {
    const int64_t choices = static_cast<int64_t>(decisions[d].choices.size());
    choice[d] = static_cast<int>(place % choices);
    place /= choices;
  }
  return choice;
}

Point LegalMoves::Random(Rng* rng) const {
  constexpr int kDraws = 64, kDrawsOfLarge = 2048;
  Point point{rng->Below(static_cast<int>(sketches_.size())), {}};
  const std::vector<Decision>& decisions = SpaceOf(point).decisions;
  if (SpaceOf(point).listed != nullptr) return Sampler(sketches_).Random(rng);
  point.choice.resize(decisions.size());
  const int draws = SpaceOf(point).size() > kMostPlaces ? kDrawsOfLarge : kDraws;
  for (int draw = 0; draw < draws; ++draw) {
    for (size_t d = 0; d < decisions.size(); ++d)
      point.choice[d] = rng->Below(static_cast<int>(decisions[d].choices.size()));
    if (SpaceOf(point).Legal(point.choice)) return point;
  }
  if (const std::vector<int64_t>* const places = List(point.sketch); places != nullptr && !places->empty()) {
    point.choice = ChoiceAt(point.sketch, (*places)[rng->Below(static_cast<int>(places->size()))]);
    return point;
  }
  return Sampler(sketches_).Random(rng);
}

std::vector<int> LegalMoves::Line(const Point& point, int decision) const {
  const Space& space = SpaceOf(point);
  std::vector<int> legal;
  Choice choice = point.choice;
  for (size_t i = 0; i < space.decisions[decision].choices.size(); ++i) {
    choice[decision] = static_cast<int>(i);
    if (choice[decision] == point.choice[decision] || space.Legal(choice)) legal.push_back(choice[decision]);
  }
  return legal;
}

int LegalMoves::Distance(const Point& a, const Point& b) const {
  const std::vector<Decision>& decisions = SpaceOf(a).decisions;
  int distance = 0;
  for (size_t d = 0; d < decisions.size(); ++d) {
    const int apart = std::abs(a.choice[d] - b.choice[d]);
    distance += decisions[d].ordered ? apart : 2 * std::min(apart, 1);
  }
  return distance;
}

std::vector<Point> LegalMoves::Nearest(const Point& point, const Point& except) const {
  std::vector<Point> nearest;
  const std::vector<int64_t>* const places = List(point.sketch);
  if (places == nullptr) return nearest;
  int least = std::numeric_limits<int>::max();
  for (const int64_t place : *places) {
    Point other{point.sketch, ChoiceAt(point.sketch, place)};
    if (other == point || other == except) continue;
    const int distance = Distance(point, other);
    if (distance > least) continue;
    if (distance < least) nearest.clear();
    least = distance;
    nearest.push_back(std::move(other));
  }
  return nearest;
}

std::vector<Point> LegalMoves::Around(const Point& point) const {
  std::vector<Point> around = Sampler(sketches_).Neighbours(point);
  if (static_cast<int>(around.size()) >= kFew) return around;
  const std::vector<Decision>& decisions = SpaceOf(point).decisions;
  Point other = point;
  const auto changes = [&](size_t d, auto&& visit) {
    for (size_t i = 0; i < decisions[d].choices.size(); ++i) {
      other.choice[d] = static_cast<int>(i);
      if (other.choice[d] != point.choice[d]) visit();
    }
    other.choice[d] = point.choice[d];
  };
  for (size_t a = 0; a < decisions.size(); ++a) {
    for (size_t b = a + 1; b < decisions.size(); ++b) {
      changes(a, [&] {
        changes(b, [&] {
          if (SpaceOf(point).Legal(other.choice)) around.push_back(other);
        });
      });
    }
  }
  return around.empty() ? Nearest(point, point) : around;
}

Point LegalMoves::Fit(const Point& target, const Point& from, Rng* rng) const {
  constexpr int kWays = 4;
  if (SpaceOf(target).Legal(target.choice)) return target;
  Point best = from;
  for (int way = 0; way < kWays; ++way) {
    Point point = target;
    for (const int d : ShuffledDecisions(target.choice.size(), rng)) {
      if (point.choice[d] == from.choice[d]) continue;
      point.choice[d] = from.choice[d];
      if (SpaceOf(point).Legal(point.choice)) break;
    }
    if (Distance(point, from) > Distance(best, from)) best = std::move(point);
  }
  if (best != from) return best;
  const std::vector<Point> nearest = Nearest(target, from);
  return nearest.empty() ? from : nearest[rng->Below(static_cast<int>(nearest.size()))];
}

std::optional<int64_t> LegalMoves::CountUpTo(int64_t limit) const {
  int64_t count = 0;
  for (size_t s = 0; s < sketches_.size(); ++s) {
    const std::vector<int64_t>* const places = List(static_cast<int>(s));
    if (places == nullptr) return std::nullopt;
    count += static_cast<int64_t>(places->size());
    if (count > limit) return std::nullopt;
  }
  return count;
}

std::vector<Point> LegalMoves::All() const {
  std::vector<Point> all;
  for (size_t s = 0; s < sketches_.size(); ++s) {
    const int sketch = static_cast<int>(s);
    for (const int64_t place : *List(sketch)) all.push_back({sketch, ChoiceAt(sketch, place)});
  }
  return all;
}

}  // namespace mycc
