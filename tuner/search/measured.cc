#include "tuner/search/measured.h"

#include <algorithm>

namespace mycc {
namespace {

// Start points in a row that were not proposed: there are no more behind them.
constexpr int kGap = 16;

}  // namespace

MeasuredSearch::MeasuredSearch(const SearchConfig& config, std::vector<Sketch> sketches,
                               const std::vector<Trace>& history, Scorer* scorer)
    : SearchStrategy(config, std::move(sketches), scorer), moves_(sketches_) {
  for (const Trace& trace : history) {
    const auto point = Refit(trace, sketches_);
    if (point && std::ranges::find(history_, *point) == history_.end()) history_.push_back(*point);
  }
}

std::vector<ProposedPoint> MeasuredSearch::Propose(int generation, int visible) {
  Turn turn{generation,
            visible,
            SeenPoints(ledger(), visible),
            UnrankedContext(),
            Rng(config_.seed, static_cast<uint64_t>(generation)),
            Picks(wanted(), turn.context)};
  Fill(&turn);
  const Sampler sampler(sketches_);
  TakeRandom(wanted() - turn.picks.size(), sampler, turn.context, &turn.rng, &turn.picks);
  TakeByEnumeration(0, sampler, turn.context, &turn.picks);
  return turn.picks.Release();
}

bool MeasuredSearch::Take(const Point& point, Origin origin, Turn* turn) const {
  if (turn->picks.full() || turn->seen.Proposed(point)) return false;
  Pool pool(turn->context);
  pool.Add({{point, origin}});
  return !pool.members().empty() && turn->picks.Take(pool.members().front());
}

Point MeasuredSearch::Start(int number) const {
  const size_t at = static_cast<size_t>(number);
  if (at < sketches_.size()) return {number, sketches_[at].default_choice};
  if (at < sketches_.size() + history_.size()) return history_[at - sketches_.size()];
  Rng rng(config_.seed, (uint64_t{1} << 32) + static_cast<uint64_t>(number));
  return moves_.Random(&rng);
}

Origin MeasuredSearch::OriginOfStart(int number) const {
  const size_t at = static_cast<size_t>(number);
  if (at < sketches_.size()) return Origin::kDefault;
  return at < sketches_.size() + history_.size() ? Origin::kHistory : Origin::kRandom;
}

int MeasuredSearch::StartsMade(const Turn& turn) const {
  // There are no more of them than candidates, and in small spaces random points come again.
  const int most = static_cast<int>(ledger().num_candidates()) + kGap;
  int made = 0;
  for (int number = 0; number < std::min(most, made + kGap); ++number) {
    if (turn.seen.Proposed(Start(number))) made = number + 1;
  }
  return made;
}

void MeasuredSearch::TakeStarts(int number, int size, Turn* turn) const {
  int failures = 0;
  for (; turn->picks.size() < size && !turn->picks.full() && failures < kGap; ++number)
    failures = Take(Start(number), OriginOfStart(number), turn) ? 0 : failures + 1;
}

}  // namespace mycc
