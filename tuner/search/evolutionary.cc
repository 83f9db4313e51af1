// One generation, step by step: start points, evolved population, coordinate descent, predicted and random
// points.
#include "tuner/search/evolutionary.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tuner/search/trust.h"

namespace mycc {
namespace {

using Points = std::vector<std::pair<Point, Origin>>;
using Entries = std::vector<const SearchLedger::Entry*>;

// Without predictions: a point is about as good as the nearest measured one, a little worse for each place
// between them.
double NearestMeasured(const Point& point, const std::vector<Sketch>& sketches, const Entries& measured) {
  constexpr double kPerPlace = 0.05;
  double best = std::numeric_limits<double>::infinity(), nearest = std::numeric_limits<double>::infinity();
  for (const SearchLedger::Entry* entry : measured) {
    const Point& other = entry->candidate.point;
    if (other.sketch != point.sketch) continue;
    double places = 0;
    for (size_t d = 0; d < point.choice.size(); ++d) {
      const int apart = std::abs(point.choice[d] - other.choice[d]);
      places += sketches[point.sketch].space.decisions[d].ordered ? apart : 2 * std::min(apart, 1);
    }
    if (places < nearest) {
      nearest = places;
      best = *entry->outcome->seconds * (1 + kPerPlace * places);
    }
  }
  return best;
}

// Tournament selection: the best of a few drawn members. Members are sorted, so the lowest index wins.
const Member& SelectParent(const Pool& pool, Rng* rng) {
  constexpr int kTournament = 4;
  int winner = std::numeric_limits<int>::max();
  for (int i = 0; i < kTournament; ++i)
    winner = std::min(winner, rng->Below(static_cast<int>(pool.members().size())));
  return pool.members()[winner];
}

}  // namespace

EvolutionarySearch::EvolutionarySearch(const SearchConfig& config, std::vector<Sketch> sketches,
                                       const std::vector<Trace>& history, Scorer* scorer)
    : SearchStrategy(config, std::move(sketches), scorer) {
  for (const Trace& trace : history) {
    const auto point = Refit(trace, sketches_);
    if (point && std::find(history_.begin(), history_.end(), *point) == history_.end())
      history_.push_back(*point);
  }
}

EvolutionarySearch::Shares EvolutionarySearch::SharesOf(int generation, int visible, bool believe) const {
  constexpr double kStillImproving = 0.98;  // new best / old best
  const Entries measured = ledger().Fastest(visible);
  const int n = config_.generation_size;
  double random = config_.epsilon, descent = 0;
  if (!measured.empty()) {
    const Entries before = ledger().Fastest(visible - 2);
    const bool stalled =
        !before.empty() && *measured[0]->outcome->seconds > kStillImproving * *before[0]->outcome->seconds;
    descent = stalled || !believe ? 0.5 : 0.3;
    if (!believe) random = std::max(random, 0.2);
  }
  // Small generations take their random point in turns.
  const double exact = random * n;
  const int whole = static_cast<int>(std::floor(exact * (generation + 1)) - std::floor(exact * generation));
  return {whole, static_cast<int>(std::lround(descent * n))};
}

std::vector<ProposedPoint> EvolutionarySearch::Propose(int generation, int visible) {
  const Entries measured = ledger().Fastest(visible);
  const bool believe = scorer_ != nullptr && PredictionsLead(measured);
  Pool::Context context = UnrankedContext();
  context.unranked_order = [&](const Point& point) { return NearestMeasured(point, sketches_, measured); };
  context.believe = believe;
  const Sampler sampler(sketches_);
  Rng rng(config_.seed, static_cast<uint64_t>(generation));
  const Shares shares = SharesOf(generation, visible, believe);
  Picks picks(config_.generation_size);
  if (generation == 0) TakeStart(context, &picks);

  Pool pool(context);
  Evolve(visible, context, &rng, &pool);
  if (generation == 0 && pool.analytic_best() != nullptr) picks.Take(*pool.analytic_best());
  TakeDescent(shares.descent, visible, context, &picks);
  TakePredicted(config_.generation_size - picks.size() - shares.random, pool, &picks);
  TakeRandom(config_.generation_size - picks.size(), sampler, context, &rng, &picks);
  TakeByEnumeration(0, sampler, context, &picks);
  return picks.Release();
}

// Defaults come first whatever is predicted, history takes up to half of what they leave.
void EvolutionarySearch::TakeStart(const Pool::Context& context, Picks* picks) const {
  const auto take = [&](const Point& point, Origin origin) {
    Pool pool(context);
    pool.Add({{point, origin}});
    for (const Member& member : pool.members()) picks->Take(member);
  };
  for (size_t s = 0; s < sketches_.size(); ++s)
    take({static_cast<int>(s), sketches_[s].default_choice}, Origin::kDefault);
  const int limit = picks->size() + (config_.generation_size - picks->size()) / 2;
  for (const Point& point : history_) {
    if (picks->size() < limit) take(point, Origin::kHistory);
  }
}

// Coordinate descent: the neighbours of the best measured points, the best predicted ones first; the very
// best point's before the others'.
void EvolutionarySearch::TakeDescent(int count, int visible, const Pool::Context& context,
                                     Picks* picks) const {
  constexpr size_t kCentres = 3;
  const Sampler sampler(sketches_);
  const Entries measured = ledger().Fastest(visible);
  int left = count;
  for (size_t c = 0; c < std::min(kCentres, measured.size()) && left > 0; ++c) {
    Points neighbours;
    for (Point& point : sampler.Neighbours(measured[c]->candidate.point))
      neighbours.emplace_back(std::move(point), Origin::kDescent);
    Pool pool(context);
    pool.Add(neighbours);
    // The best point gets most of the places, so that the others are not forgotten while it has untried
    // neighbours.
    int share = c + 1 == std::min(kCentres, measured.size()) ? left : (left * 2 + 2) / 3;
    for (const Member& member : pool.members()) {
      if (share == 0) break;
      if (picks->Take(member)) --share, --left;
    }
  }
}

// Best predicted first; each differs from every pick in two decisions while there are such, then in one.
void EvolutionarySearch::TakePredicted(int count, const Pool& pool, Picks* picks) const {
  int left = count;
  for (const int distance : {2, 1}) {
    for (const Member& member : pool.members()) {
      if (left <= 0) return;
      if (picks->Distance(member.point) >= distance && picks->Take(member)) --left;
    }
  }
}

void EvolutionarySearch::Evolve(int visible, const Pool::Context& context, Rng* rng, Pool* pool) const {
  constexpr double kCrossover = 0.3, kImmigrants = 0.1;
  const Sampler sampler(sketches_);
  const Entries measured = ledger().Fastest(visible);
  const size_t parents = std::min<size_t>(measured.size(), config_.population / 4);
  const Entries fastest(measured.begin(), measured.begin() + static_cast<std::ptrdiff_t>(parents));
  const double scale = context.believe ? PredictionScale(fastest, scorer_) : 1;
  for (size_t i = 0; i < parents; ++i)
    pool->AddMeasured(measured[i]->candidate, *measured[i]->outcome->seconds * scale);

  Points start;
  for (size_t s = 0; s < sketches_.size(); ++s)
    start.emplace_back(Point{static_cast<int>(s), sketches_[s].default_choice}, Origin::kDefault);
  for (const Point& point : history_) start.emplace_back(point, Origin::kHistory);
  while (static_cast<int>(start.size() + parents) < config_.population)
    start.emplace_back(sampler.Random(rng), Origin::kRandom);
  pool->Add(start);

  for (int step = 0; step < config_.evolution_steps && !pool->members().empty(); ++step) {
    Points children;
    for (int i = 0; i < config_.population; ++i) {
      if (rng->Chance(kImmigrants)) {
        children.emplace_back(sampler.Random(rng), Origin::kRandom);
        continue;
      }
      const Member& parent = SelectParent(*pool, rng);
      std::optional<Point> mixed;
      if (rng->Chance(kCrossover))
        mixed = sampler.Crossover(parent.point, SelectParent(*pool, rng).point, rng);
      if (mixed && rng->Chance(0.5)) {
        children.emplace_back(*mixed, Origin::kCrossover);
      } else {
        children.emplace_back(sampler.Mutate(mixed ? *mixed : parent.point, rng), Origin::kMutation);
      }
    }
    pool->Add(children);
    pool->KeepFastest(config_.population);
  }
}

}  // namespace mycc
