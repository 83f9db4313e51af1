// One generation, step by step: start points, evolved population, coordinate descent, predicted and random
// points.
#include "tuner/search/evolutionary.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tuner/search/decision_search.h"
#include "tuner/search/prior_descent.h"
#include "tuner/search/trust.h"

namespace mycc {
namespace {

using Points = std::vector<std::pair<Point, Origin>>;
using Entries = std::vector<const SearchLedger::Entry*>;

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
    if (point && std::ranges::find(history_, *point) == history_.end()) history_.push_back(*point);
  }
}

EvolutionarySearch::Shares EvolutionarySearch::SharesOf(int generation, int visible, bool believe) const {
  constexpr double kStillImproving = 0.98;  // new best / old best
  const Entries measured = ledger().Fastest(visible);
  const int n = wanted();
  double random = config_.epsilon, descent = 0;
  if (!measured.empty()) {
    const Entries before = ledger().Fastest(visible - 2);
    const bool stalled =
        !before.empty() && *measured[0]->outcome->seconds > kStillImproving * *before[0]->outcome->seconds;
    descent = stalled || !believe ? 0.5 : 0.3;
  }
  // Small generations take their random point in turns.
  const double exact = random * n;
  int whole = static_cast<int>(std::floor(exact * (generation + 1)) - std::floor(exact * generation));
  // All else in the first generation is what one model believes in.
  constexpr int kOneRandomIn = 8;
  if (generation == 0) whole = std::max(whole, n / kOneRandomIn);
  return {whole, static_cast<int>(std::lround(descent * n))};
}

std::vector<ProposedPoint> EvolutionarySearch::Propose(int generation, int visible) {
  constexpr size_t kEnoughToLearn = 12;  // measured points, for a model of the decisions
  const Entries measured = ledger().Fastest(visible);
  const bool believe = PredictionsLead(measured);
  Pool::Context context = UnrankedContext();
  context.believe = believe;
  const FailuresSeen failures(ledger(), visible);
  context.failures = &failures;
  const Sampler sampler(sketches_);
  Rng rng(config_.seed, static_cast<uint64_t>(generation));
  if (scorer_ == nullptr || scorer_->KnowsDecisionsAlone())
    return ProposeByDecisions(generation, visible, context, &rng);
  const Shares shares = SharesOf(generation, visible, believe);
  Picks picks(wanted(), context);
  Pool pool(context);
  if (generation == 0 && scorer_ != nullptr) AddPriorBest(context, &pool);
  Evolve(visible, context, &rng, &pool);
  const auto take_promising = [&](int count) {
    DecisionSearch(sketches_, ledger(), visible, context).TakePromising(count, &rng, &picks);
  };
  const bool knows_enough = measured.size() >= kEnoughToLearn;
  picks.TakeWithPrefetch([&](Picks* to) {
    if (generation == 0) TakeStart(context, to);
    if (generation == 0 && pool.analytic_best() != nullptr) to->Take(*pool.analytic_best());
    if (!knows_enough) TakeDescent(shares.descent, visible, context, to);
  });
  if (believe && knows_enough) take_promising(shares.descent);
  const int places = wanted() - picks.size() - shares.random;
  if (believe) {
    picks.TakeWithPrefetch([&](Picks* to) { TakePredicted(places, pool, to); });
  } else {
    take_promising(places);
  }
  TakeRandom(wanted() - picks.size(), sampler, context, &rng, &picks);
  TakeByEnumeration(0, sampler, context, &picks);
  return picks.Release();
}

// The first points are far from each other, unless something is known of good ones.
std::vector<ProposedPoint> EvolutionarySearch::ProposeByDecisions(int generation, int visible,
                                                                  const Pool::Context& context,
                                                                  Rng* rng) const {
  constexpr int64_t kSpread = 12;
  Picks picks(wanted(), context);
  if (generation == 0) picks.TakeWithPrefetch([&](Picks* to) { TakeStart(context, to); });
  DecisionSearch search(sketches_, ledger(), visible, context);
  const int64_t spread = history_.empty() ? kSpread - ledger().num_candidates() - picks.size() : 0;
  search.TakeSpread(static_cast<int>(std::clamp<int64_t>(spread, 0, wanted())), rng, &picks);
  search.TakePromising(wanted() - picks.size(), rng, &picks);
  const Sampler sampler(sketches_);
  TakeRandom(wanted() - picks.size(), sampler, context, rng, &picks);
  TakeByEnumeration(0, sampler, context, &picks);
  return picks.Release();
}

// Defaults and the rules' other starts come first whatever is predicted, history takes up to half of what
// they leave. A small generation has room for the best predicted ones alone: one default, and starts in a
// quarter.
void EvolutionarySearch::TakeStart(const Pool::Context& context, Picks* picks) const {
  const auto take = [&](const Point& point, Origin origin) {
    Pool pool(context);
    pool.Add({{point, origin}});
    for (const Member& member : pool.members()) picks->Take(member);
  };
  if (wanted() < config_.generation_size) {
    const auto take_best = [&](const Points& points, int most) {
      Pool ranked(context);
      ranked.Add(points);
      for (int i = 0; i < std::min(most, static_cast<int>(ranked.members().size())); ++i)
        picks->Take(ranked.members()[i]);
    };
    take_best(Defaults(), 1);
    take_best(Starts(), wanted() / 4);
  } else {
    for (const auto& [point, origin] : Defaults()) take(point, origin);
    for (const auto& [point, origin] : Starts()) take(point, origin);
  }
  const int limit = picks->size() + (wanted() - picks->size()) / 2;
  for (const Point& point : history_) {
    if (picks->size() < limit) take(point, Origin::kHistory);
  }
}

std::vector<std::pair<Point, Origin>> EvolutionarySearch::Defaults() const {
  Points defaults;
  for (size_t s = 0; s < sketches_.size(); ++s)
    defaults.emplace_back(Point{static_cast<int>(s), sketches_[s].default_choice}, Origin::kDefault);
  return defaults;
}

std::vector<std::pair<Point, Origin>> EvolutionarySearch::Starts() const {
  Points starts;
  for (size_t s = 0; s < sketches_.size(); ++s) {
    for (const Choice& start : sketches_[s].starts)
      starts.emplace_back(Point{static_cast<int>(s), start}, Origin::kStart);
  }
  return starts;
}

// From the defaults, the points of the log, and the best of some random ones.
void EvolutionarySearch::AddPriorBest(const Pool::Context& context, Pool* pool) const {
  constexpr int kPredictions = 320, kRandom = 48;
  constexpr size_t kStartsOfAKind = 3;
  constexpr uint64_t kStream = uint64_t{1} << 32;  // no generation's
  const Sampler sampler(sketches_);
  std::vector<Point> starts;
  const auto add_best = [&](const Points& points) {
    Pool ranked(context);
    ranked.Add(points);
    for (size_t i = 0; i < std::min(kStartsOfAKind, ranked.members().size()); ++i)
      starts.push_back(ranked.members()[i].point);
  };
  add_best(Defaults());
  add_best(Starts());
  for (size_t i = 0; i < std::min(kStartsOfAKind, history_.size()); ++i) starts.push_back(history_[i]);
  Points random;
  Rng rng(config_.seed, kStream);
  for (int i = 0; i < kRandom; ++i) random.emplace_back(sampler.Random(&rng), Origin::kRandom);
  add_best(random);
  Points ends;
  for (const Point& end : DescendPrior(starts, kPredictions, sketches_, context))
    ends.emplace_back(end, Origin::kDescent);
  pool->Add(ends);
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

  Points start = Defaults();
  for (const auto& known : Starts()) start.push_back(known);
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
