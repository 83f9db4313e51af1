#include "tuner/search/annealing.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mycc {
namespace {

constexpr int kAnnealingStarts = 8;  // points before the first step
constexpr int kNearDecisions = 3;

// The temperature of a walk's step, in units of the logarithm of the seconds.
double Temperature(int step) {
  constexpr double kHot = 0.3, kCold = 0.01;
  constexpr int kFirstCycle = 40;
  int length = kFirstCycle;
  while (step >= length) {
    step -= length;
    length *= 2;
  }
  return kHot * std::pow(kCold / kHot, static_cast<double>(step) / length);
}

bool BeginsCycle(int step) { return step > 0 && Temperature(step) > Temperature(step - 1); }

bool Near(const Point& a, const Point& b) {
  if (a.sketch != b.sketch) return false;
  int different = 0;
  for (size_t d = 0; d < a.choice.size(); ++d) different += a.choice[d] != b.choice[d];
  return different <= kNearDecisions;
}

}  // namespace

int SimulatedAnnealing::NumWalks() const {
  constexpr int kAtATime = 8, kMostWalks = 8;
  return std::clamp(config_.generation_size / kAtATime, 1, kMostWalks);
}

std::vector<SimulatedAnnealing::Walk> SimulatedAnnealing::Follow(int visible) const {
  std::vector<Walk> walks(NumWalks());
  std::vector<int> steps(walks.size(), 0);
  Walk best;
  best.seconds = std::numeric_limits<double>::infinity();
  int64_t ordinal = -1;
  for (int g = 0; g < std::min(visible, ledger().generations()); ++g) {
    for (const SearchLedger::Entry& entry : ledger().generation(g)) {
      const size_t w = static_cast<size_t>(++ordinal) % walks.size();
      Walk& walk = walks[w];
      if (ordinal >= kAnnealingStarts && BeginsCycle(++steps[w]) && best.at) walk = best;
      const double seconds = *VisibleSeconds(entry, g, visible);
      if (!std::isfinite(seconds)) continue;
      const Point& point = entry.candidate.point;
      // Points from elsewhere are no steps of the walk: it goes there when they are faster.
      double probability = !walk.at || seconds < walk.seconds ? 1 : 0;
      if (probability == 0 && ordinal >= kAnnealingStarts && Near(point, *walk.at))
        probability = std::exp(-std::log(seconds / walk.seconds) / Temperature(steps[w]));
      Rng rng(config_.seed, (uint64_t{3} << 32) + static_cast<uint64_t>(ordinal));
      if (rng.Unit() < probability) walk = {point, seconds};
      if (seconds < best.seconds) best = {point, seconds};
    }
  }
  return walks;
}

void SimulatedAnnealing::Fill(Turn* turn) {
  const int made = StartsMade(*turn);
  if (NextOrdinal(*turn) < kAnnealingStarts)
    TakeStarts(made, kAnnealingStarts - static_cast<int>(NextOrdinal(*turn)), turn);
  const std::vector<Walk> walks = Follow(turn->visible);
  while (!turn->picks.full()) {
    const int before = turn->picks.size();
    const Walk& walk = walks[static_cast<size_t>(NextOrdinal(*turn)) % walks.size()];
    if (walk.at) {
      Step(walk, turn);
    } else {
      TakeStarts(made + before, before + 1, turn);
    }
    if (turn->picks.size() == before) return;
  }
}

// One new neighbour; from a point without new neighbours, a neighbour of one of them, and so on.
void SimulatedAnnealing::Step(const Walk& walk, Turn* turn) const {
  constexpr int kTries = 8, kFar = 16;
  Point from = *walk.at;
  for (int far = 0; far < kFar; ++far) {
    const std::vector<Point> around = moves().Around(from);
    if (around.empty()) return;
    for (int i = 0; i < kTries; ++i) {
      const Point& point = around[turn->rng.Below(static_cast<int>(around.size()))];
      if (Take(point, Origin::kMutation, turn)) return;
    }
    from = around[turn->rng.Below(static_cast<int>(around.size()))];
  }
}

}  // namespace mycc
