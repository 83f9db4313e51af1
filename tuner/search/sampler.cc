#include "tuner/search/sampler.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace mycc {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 62;
constexpr int kTries = 24;  // of a random construction, before a slower one that cannot fail

std::vector<int> Shuffled(int n, Rng* rng) {
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  for (int i = n - 1; i > 0; --i) std::swap(order[i], order[rng->Below(i + 1)]);
  return order;
}

int NumChoices(const Space& space, int decision) {
  return static_cast<int>(space.decisions[decision].choices.size());
}

// Gives every decision in turn a random choice among those that are legal beside the others: from a legal
// point to a legal point.
void Resample(const Space& space, Choice* choice, Rng* rng) {
  for (const int d : Shuffled(static_cast<int>(choice->size()), rng)) {
    std::vector<int> legal;
    legal.reserve(NumChoices(space, d));
    const int before = (*choice)[d];
    for (int i = 0; i < NumChoices(space, d); ++i) {
      (*choice)[d] = i;
      if (i == before || space.Legal(*choice)) legal.push_back(i);
    }
    (*choice)[d] = legal[rng->Below(static_cast<int>(legal.size()))];
  }
}

Choice RandomChoice(const Sketch& sketch, Rng* rng) {
  const Space& space = sketch.space;
  if (space.listed != nullptr) return (*space.listed)[rng->Below(static_cast<int>(space.listed->size()))];
  Choice choice(space.decisions.size());
  for (int attempt = 0; attempt < kTries; ++attempt) {
    for (size_t d = 0; d < choice.size(); ++d) choice[d] = rng->Below(NumChoices(space, static_cast<int>(d)));
    if (space.Legal(choice)) return choice;
  }
  choice = sketch.default_choice;
  for (int sweep = 0; sweep < 2; ++sweep) Resample(space, &choice, rng);
  return choice;
}

// Another index for one decision: near the old one when the choices are ordered, mostly.
int MovedIndex(const Decision& decision, int index, Rng* rng) {
  constexpr double kNear = 0.7;
  const int n = static_cast<int>(decision.choices.size());
  if (decision.ordered && rng->Chance(kNear)) {
    const int step = (rng->Chance(0.7) ? 1 : 2) * (rng->Chance(0.5) ? 1 : -1);
    const int moved = std::clamp(index + step, 0, n - 1);
    if (moved != index) return moved;
  }
  const int other = rng->Below(n - 1);
  return other < index ? other : other + 1;
}

int64_t SaturatingMultiply(int64_t a, int64_t b) {
  const __int128 product = static_cast<__int128>(a) * b;
  return product > kMaxSize ? kMaxSize : static_cast<int64_t>(product);
}

}  // namespace

Point Sampler::Random(Rng* rng) const {
  const int sketch = rng->Below(static_cast<int>(sketches_.size()));
  return {sketch, RandomChoice(sketches_[sketch], rng)};
}

Point Sampler::Mutate(const Point& point, Rng* rng) const {
  const Space& space = SpaceOf(point);
  std::vector<int> open;
  for (size_t d = 0; d < space.decisions.size(); ++d) {
    if (space.decisions[d].choices.size() > 1) open.push_back(static_cast<int>(d));
  }
  if (open.empty()) return point;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    Point moved = point;
    do {
      const int d = open[rng->Below(static_cast<int>(open.size()))];
      moved.choice[d] = MovedIndex(space.decisions[d], moved.choice[d], rng);
    } while (rng->Chance(0.35));
    if (moved != point && space.Legal(moved.choice)) return moved;
  }
  Point moved = point;
  Resample(space, &moved.choice, rng);
  return moved;
}

std::optional<Point> Sampler::Crossover(const Point& a, const Point& b, Rng* rng) const {
  if (a.sketch != b.sketch) return std::nullopt;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    Point child = a;
    for (size_t d = 0; d < child.choice.size(); ++d) {
      if (rng->Chance(0.5)) child.choice[d] = b.choice[d];
    }
    if (SpaceOf(child).Legal(child.choice)) return child;
  }
  return std::nullopt;
}

std::vector<Point> Sampler::Neighbours(const Point& point) const {
  constexpr int kReach = 2;
  std::vector<Point> neighbours;
  const Space& space = SpaceOf(point);
  for (size_t d = 0; d < space.decisions.size(); ++d) {
    for (int i = 0; i < NumChoices(space, static_cast<int>(d)); ++i) {
      const int distance = std::abs(i - point.choice[d]);
      if (distance == 0 || (space.decisions[d].ordered && distance > kReach)) continue;
      Point neighbour = point;
      neighbour.choice[d] = i;
      if (space.Legal(neighbour.choice)) neighbours.push_back(std::move(neighbour));
    }
  }
  return neighbours;
}

int64_t Sampler::SketchSize(int sketch) const {
  if (sketches_[sketch].space.listed != nullptr)
    return static_cast<int64_t>(sketches_[sketch].space.listed->size());
  int64_t size = 1;
  for (const Decision& decision : sketches_[sketch].space.decisions) {
    size = SaturatingMultiply(size, static_cast<int64_t>(decision.choices.size()));
  }
  return size;
}

int64_t Sampler::size() const {
  int64_t size = 0;
  for (size_t s = 0; s < sketches_.size(); ++s)
    size += std::min(kMaxSize - size, SketchSize(static_cast<int>(s)));
  return size;
}

Point Sampler::At(int64_t number) const {
  Point point;
  while (point.sketch + 1 < static_cast<int>(sketches_.size()) && number >= SketchSize(point.sketch)) {
    number -= SketchSize(point.sketch++);
  }
  const Space& space = SpaceOf(point);
  if (space.listed != nullptr) {
    point.choice = (*space.listed)[static_cast<size_t>(number)];
    return point;
  }
  point.choice.resize(space.decisions.size());
  for (size_t d = space.decisions.size(); d-- > 0;) {
    const int64_t n = NumChoices(space, static_cast<int>(d));
    point.choice[d] = static_cast<int>(number % n);
    number /= n;
  }
  return point;
}

int64_t Sampler::Enumerate(int64_t start, int64_t limit,
                           const std::function<bool(const Point&)>& visit) const {
  const int64_t n = size();
  // A step coprime to n reaches every place once; near n / golden ratio it keeps the places of any prefix far
  // from each other.
  int64_t step = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(n) * 0.6180339887498949));
  while (std::gcd(step, n) != 1) ++step;
  int64_t looked = 0;
  for (int64_t place = start; place < n && looked < limit; ++place) {
    ++looked;
    const Point point = At(static_cast<int64_t>(static_cast<__int128>(place) * step % n));
    if (SpaceOf(point).Legal(point.choice) && !visit(point)) break;
  }
  return looked;
}

}  // namespace mycc
