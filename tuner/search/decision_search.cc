// The options of a generation: random points, the neighbourhood of the fastest, and hill climbing from the
// most promising.
#include "tuner/search/decision_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

namespace mycc {
namespace {

using Entry = SearchLedger::Entry;

constexpr size_t kMaxRows = 256;  // of the model: it grows with their cube
constexpr int kSmall = 2048;      // of a space whose points are all asked about

// How far apart two points are, in decisions: a part of one for a step along an ordered decision.
double Apart(const Point& a, const Point& b, const std::vector<Sketch>& sketches) {
  const std::vector<Decision>& decisions = sketches[a.sketch].space.decisions;
  if (a.sketch != b.sketch) return static_cast<double>(decisions.size());
  double sum = 0;
  for (size_t d = 0; d < decisions.size(); ++d) {
    const int steps = std::abs(a.choice[d] - b.choice[d]);
    if (steps > 0)
      sum += decisions[d].ordered ? steps / (static_cast<double>(decisions[d].choices.size()) - 1) : 1;
  }
  return sum;
}

// The entries that teach: of more than the model holds, the fastest half and the latest.
std::vector<const Entry*> Lessons(const SearchLedger& ledger, int visible) {
  std::vector<const Entry*> entries = ledger.Fastest(visible);
  if (entries.size() > kMaxRows / 2) entries.resize(kMaxRows / 2);
  absl::flat_hash_set<const Entry*> taken(entries.begin(), entries.end());
  for (int g = std::min(visible, ledger.generations()) - 1; g >= 0; --g) {
    for (const Entry& entry : ledger.generation(g)) {
      if (entries.size() >= kMaxRows) return entries;
      const bool teaches = entry.outcome && !entry.outcome->given_up() && !entry.candidate.trace.empty();
      if (teaches && taken.insert(&entry).second) entries.push_back(&entry);
    }
  }
  return entries;
}

}  // namespace

DecisionSearch::DecisionSearch(const std::vector<Sketch>& sketches, const SearchLedger& ledger, int visible,
                               const Pool::Context& context)
    : sketches_(sketches),
      ledger_(ledger),
      visible_(visible),
      context_(context),
      sampler_(sketches),
      model_(sketches) {
  for (int g = 0; g < ledger.generations(); ++g) {
    for (const Entry& entry : ledger.generation(g)) {
      if (!entry.candidate.trace.empty()) known_.insert(entry.candidate.point);
    }
  }
}

double DecisionSearch::DistanceToProposed(const Point& point, const Picks& picks) const {
  double nearest = std::numeric_limits<double>::infinity();
  for (int g = 0; g < ledger_.generations(); ++g) {
    for (const Entry& entry : ledger_.generation(g)) {
      if (entry.candidate.trace.empty()) continue;
      nearest = std::min(nearest, Apart(point, entry.candidate.point, sketches_));
    }
  }
  for (const ProposedPoint& proposal : picks.proposals())
    nearest = std::min(nearest, Apart(point, proposal.candidate.point, sketches_));
  return nearest;
}

void DecisionSearch::TakeSpread(int count, Rng* rng, Picks* picks) const {
  constexpr int kDrawn = 64, kAttempts = 4;
  for (int left = count, attempts = 0; left > 0 && attempts < count + kAttempts && !picks->full();
       ++attempts) {
    std::pair<double, Point> farthest = {0, {}};
    for (int i = 0; i < kDrawn; ++i) {
      Point point = sampler_.Random(rng);
      const double distance = DistanceToProposed(point, *picks);
      if (distance > farthest.first) farthest = {distance, std::move(point)};
    }
    if (farthest.first == 0) return;
    Pool pool(context_);
    pool.Add({{farthest.second, Origin::kRandom}});
    for (const Member& member : pool.members()) left -= picks->Take(member);
  }
}

std::vector<std::optional<Guess>> DecisionSearch::GuessesOf(const Points& points) const {
  // Predictions of other scorers follow the samples or are not believed: neither is a guess to start from.
  const bool has_guesses = context_.scorer != nullptr && context_.scorer->KnowsDecisionsAlone();
  if (!has_guesses) return std::vector<std::optional<Guess>>(points.size(), Guess{});
  std::vector<std::optional<Guess>> guesses(points.size());
  std::vector<Trace> traces;
  std::vector<size_t> places;
  for (size_t i = 0; i < points.size(); ++i) {
    absl::StatusOr<Trace> trace = sketches_[points[i].first.sketch].instantiate(points[i].first.choice);
    if (!trace.ok()) continue;
    traces.push_back(*std::move(trace));
    places.push_back(i);
  }
  std::vector<const Trace*> asked;
  for (const Trace& trace : traces) asked.push_back(&trace);
  const std::vector<absl::StatusOr<Prediction>> predictions = context_.scorer->Score(asked);
  for (size_t p = 0; p < places.size(); ++p) {
    if (predictions[p].ok())
      guesses[places[p]] = Guess{predictions[p]->analytic_seconds, predictions[p]->failure_probability};
  }
  return guesses;
}

// Candidates whose outcome is not seen yet, and the picks so far, are assumed.
void DecisionSearch::Fit(const Picks& picks) {
  Points points, under_way;
  std::vector<std::optional<double>> seconds;
  for (const Entry* entry : Lessons(ledger_, visible_)) {
    points.emplace_back(entry->candidate.point, entry->candidate.origin);
    seconds.push_back(entry->outcome->seconds);
  }
  for (int g = std::max(0, visible_); g < ledger_.generations(); ++g) {
    for (const Entry& entry : ledger_.generation(g)) {
      if (!entry.candidate.trace.empty())
        under_way.emplace_back(entry.candidate.point, entry.candidate.origin);
    }
  }
  for (const ProposedPoint& proposal : picks.proposals())
    under_way.emplace_back(proposal.candidate.point, proposal.candidate.origin);
  if (under_way.size() > kMaxRows) under_way.erase(under_way.begin(), under_way.end() - kMaxRows);

  std::vector<DecisionModel::Row> rows;
  const std::vector<std::optional<Guess>> guesses = GuessesOf(points);
  for (size_t i = 0; i < points.size(); ++i) {
    if (guesses[i]) rows.push_back({points[i].first, seconds[i], *guesses[i]});
  }
  model_.Fit(rows);
  for (const auto& [point, origin] : under_way) model_.Assume(model_.Ask(point, Guess{}));
}

DecisionSearch::Points DecisionSearch::FirstPoints(Rng* rng) const {
  constexpr int kRandom = 512, kMutations = 256;
  constexpr size_t kCentres = 4, kParents = 8;
  Points points;
  if (sampler_.size() <= kSmall) {
    sampler_.Enumerate(0, kSmall, [&](const Point& point) {
      points.emplace_back(point, Origin::kGrid);
      return true;
    });
    return points;
  }
  const std::vector<const Entry*> measured = ledger_.Fastest(visible_);
  for (size_t c = 0; c < std::min(kCentres, measured.size()); ++c) {
    for (Point& point : sampler_.Neighbours(measured[c]->candidate.point))
      points.emplace_back(std::move(point), Origin::kDescent);
  }
  const size_t parents = std::min(kParents, measured.size());
  for (int i = 0; i < kMutations && parents > 0; ++i) {
    const Entry& parent = *measured[static_cast<size_t>(i) % parents];
    points.emplace_back(sampler_.Mutate(parent.candidate.point, rng), Origin::kMutation);
  }
  for (int i = 0; i < kRandom; ++i) points.emplace_back(sampler_.Random(rng), Origin::kRandom);
  return points;
}

DecisionSearch::Points DecisionSearch::ExpectedFastest(Rng* rng) const {
  constexpr int64_t kLooked = 8192;
  constexpr size_t kKept = 256;
  std::vector<std::pair<double, Point>> looked;
  const auto look = [&](const Point& point) {
    if (!known_.contains(point)) looked.emplace_back(model_.Expect(point), point);
    return true;
  };
  if (sampler_.size() <= kLooked) {
    sampler_.Enumerate(0, kLooked, look);
  } else {
    for (int64_t i = 0; i < kLooked; ++i) look(sampler_.Random(rng));
  }
  const size_t kept = std::min(kKept, looked.size());
  std::partial_sort(looked.begin(), looked.begin() + static_cast<std::ptrdiff_t>(kept), looked.end(),
                    [](const auto& a, const auto& b) {
                      return std::tie(a.first, a.second.choice) < std::tie(b.first, b.second.choice);
                    });
  Points fastest;
  for (size_t i = 0; i < kept; ++i) fastest.emplace_back(std::move(looked[i].second), Origin::kSurrogate);
  return fastest;
}

void DecisionSearch::AddOptions(const Points& points) {
  Points fresh;
  // The memo of refused points is not asked: a search that is restored has none, and the options lead to
  // others.
  for (const auto& [point, origin] : points) {
    if (known_.insert(point).second) fresh.emplace_back(point, origin);
  }
  const std::vector<std::optional<Guess>> guesses = GuessesOf(fresh);
  for (size_t i = 0; i < fresh.size(); ++i) {
    if (guesses[i])
      options_.push_back({model_.Ask(fresh[i].first, *guesses[i]), fresh[i].first, fresh[i].second});
  }
}

void DecisionSearch::Climb() {
  constexpr size_t kCentres = 8;
  std::vector<size_t> order(options_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const size_t centres = std::min(kCentres, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(centres), order.end(),
                    [&](size_t a, size_t b) {
                      const double x = options_[a].opinion.promise, y = options_[b].opinion.promise;
                      return x != y ? x > y : a < b;
                    });
  Points neighbours;
  for (size_t c = 0; c < centres; ++c) {
    for (Point& point : sampler_.Neighbours(options_[order[c]].point))
      neighbours.emplace_back(std::move(point), Origin::kMutation);
  }
  AddOptions(neighbours);
}

// False when no option is left.
bool DecisionSearch::TakeBest(Picks* picks) {
  while (true) {
    Option* best = nullptr;
    for (Option& option : options_) {
      if (!option.gone && (best == nullptr || option.opinion.promise > best->opinion.promise)) best = &option;
    }
    if (best == nullptr) return false;
    best->gone = true;
    Pool pool(context_);
    pool.Add({{best->point, best->origin}});
    if (pool.members().empty() || !picks->Take(pool.members()[0])) continue;
    model_.Assume(best->opinion);
    for (Option& option : options_) {
      if (!option.gone) model_.Refresh(&option.opinion);
    }
    return true;
  }
}

void DecisionSearch::TakePromising(int count, Rng* rng, Picks* picks) {
  constexpr int kClimbs = 3;
  if (count <= 0 || picks->full()) return;
  for (const ProposedPoint& proposal : picks->proposals()) known_.insert(proposal.candidate.point);
  Fit(*picks);
  AddOptions(FirstPoints(rng));
  if (!model_.follows_guesses() && sampler_.size() > kSmall) AddOptions(ExpectedFastest(rng));
  for (int i = 0; i < kClimbs; ++i) Climb();
  picks->TakeWithPrefetch([&](Picks* to) {
    DecisionSearch search = *this;  // a copy, because TakeBest changes the model and the options
    for (int i = 0; i < count && !to->full() && search.TakeBest(to);) ++i;
  });
}

}  // namespace mycc
