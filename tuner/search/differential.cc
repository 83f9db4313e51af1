#include "tuner/search/differential.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mycc {
namespace {

constexpr int kMembers = 12;

}  // namespace

std::vector<DifferentialEvolution::Member> DifferentialEvolution::Population(int visible) const {
  std::vector<Member> members(kMembers);
  int64_t ordinal = -1;
  for (int g = 0; g < ledger().generations(); ++g) {
    for (const SearchLedger::Entry& entry : ledger().generation(g)) {
      Member& member = members[static_cast<size_t>(++ordinal) % kMembers];
      const auto seconds = VisibleSeconds(entry, g, visible);
      if (!seconds || !std::isfinite(*seconds)) continue;
      if (!member.point || *seconds < member.seconds) member = {entry.candidate.point, *seconds};
    }
  }
  return members;
}

void DifferentialEvolution::Fill(Turn* turn) {
  const std::vector<Member> population = Population(turn->visible);
  const int made = StartsMade(*turn);
  int starts = 0;
  while (!turn->picks.full()) {
    const int before = turn->picks.size();
    const int64_t ordinal = NextOrdinal(*turn);
    const bool challenges = ordinal >= kMembers && TakeChallenger(population, ordinal % kMembers, turn);
    if (challenges) continue;
    TakeStarts(made + starts, before + 1, turn);
    if (turn->picks.size() == before) return;
    ++starts;
  }
}

// False while too few members of the target's sketch are known, and when no mixture is new.
bool DifferentialEvolution::TakeChallenger(const std::vector<Member>& population, size_t target,
                                           Turn* turn) const {
  constexpr int kTries = 16;
  Rng* const rng = &turn->rng;
  std::vector<const Member*> known, peers;
  for (const Member& member : population) {
    if (member.point) known.push_back(&member);
  }
  if (known.size() < 4) return false;
  const Member& challenged =
      population[target].point ? population[target] : *known[rng->Below(static_cast<int>(known.size()))];
  for (const Member* member : known) {
    if (member->point->sketch == challenged.point->sketch) peers.push_back(member);
  }
  std::ranges::stable_sort(peers, [](const Member* a, const Member* b) { return a->seconds < b->seconds; });
  const auto any = [&](int count) -> const Point& { return *peers[rng->Below(count)]->point; };
  for (int i = 0; i < kTries; ++i) {
    const int leaders = std::max(1, static_cast<int>(peers.size()) / 5);
    const int all = static_cast<int>(peers.size());
    Point point = Challenger(*challenged.point, any(leaders), any(all), any(all), rng);
    if (i >= kTries / 2 || all < 4) point = Sampler(sketches()).Mutate(point, rng);
    if (Take(point, Origin::kCrossover, turn)) return true;
  }
  return false;
}

Point DifferentialEvolution::Challenger(const Point& target, const Point& best, const Point& plus,
                                        const Point& minus, Rng* rng) const {
  constexpr double kCrossover = 0.8;
  const std::vector<Decision>& decisions = sketches()[target.sketch].space.decisions;
  const double toward = 0.5 + 0.5 * rng->Unit(), difference = 0.4 + 0.6 * rng->Unit();
  Point point = target;
  const int always = rng->Below(std::max(1, static_cast<int>(decisions.size())));
  for (size_t d = 0; d < decisions.size(); ++d) {
    const int last = static_cast<int>(decisions[d].choices.size()) - 1;
    if (static_cast<int>(d) != always && !rng->Chance(kCrossover)) continue;
    if (!decisions[d].ordered) {
      point.choice[d] = rng->Chance(toward) ? best.choice[d] : target.choice[d];
      if (plus.choice[d] != minus.choice[d] && rng->Chance(difference / 2)) point.choice[d] = plus.choice[d];
      continue;
    }
    const double place = target.choice[d] + toward * (best.choice[d] - target.choice[d]) +
                         difference * (plus.choice[d] - minus.choice[d]);
    point.choice[d] = std::clamp(static_cast<int>(std::floor(place + rng->Unit())), 0, last);
  }
  return moves().Fit(point, target, rng);
}

}  // namespace mycc
