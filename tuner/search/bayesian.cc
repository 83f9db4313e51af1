#include "tuner/search/bayesian.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace mycc {
namespace {

constexpr int kForestStarts = 12;   // points before the first choice by the classifier
constexpr int kMostChoices = 2048;  // between which it chooses

int Columns(const Decision& decision) {
  return decision.ordered ? 1 : static_cast<int>(decision.choices.size());
}

}  // namespace

BayesianSearch::BayesianSearch(const SearchConfig& config, std::vector<Sketch> sketches,
                               const std::vector<Trace>& history, Scorer* scorer, Classifier* classifier)
    : MeasuredSearch(config, std::move(sketches), history, scorer), classifier_(classifier) {
  for (const Sketch& sketch : this->sketches()) {
    first_column_.push_back(width_);
    ++width_;  // whether a row is of this sketch
    for (const Decision& decision : sketch.space.decisions) width_ += Columns(decision);
  }
}

void BayesianSearch::AppendRow(const Point& point, NumberTable* table) const {
  const size_t begin = table->values.size();
  table->width = width_;
  table->values.resize(begin + width_, std::numeric_limits<float>::quiet_NaN());
  for (const int first : first_column_) table->values[begin + first] = 0;
  float* cell = &table->values[begin + first_column_[point.sketch]];
  *cell++ = 1;
  const std::vector<Decision>& decisions = sketches()[point.sketch].space.decisions;
  for (size_t d = 0; d < decisions.size(); ++d) {
    const int columns = Columns(decisions[d]);
    for (int i = 0; i < columns; ++i) cell[i] = decisions[d].ordered ? point.choice[d] : point.choice[d] == i;
    cell += columns;
  }
}

void BayesianSearch::Fill(Turn* turn) {
  const int made = StartsMade(*turn);
  const int early = kForestStarts - static_cast<int>(NextOrdinal(*turn));
  if (early > 0) TakeStarts(made, early, turn);
  if (ledger().Fastest(turn->visible).size() < 2) {
    TakeStarts(made + turn->picks.size(), wanted(), turn);
    return;
  }
  const std::vector<Point> choices = Choices(*turn, &turn->rng);
  std::vector<double> scores = Probabilities(choices, turn->visible);
  const auto penalize = [&](const Point& near) {
    constexpr double kReach = 1.5;  // steps
    for (size_t i = 0; i < choices.size(); ++i) {
      if (choices[i].sketch != near.sketch) continue;
      const double distance = moves().Distance(choices[i], near) / kReach;
      scores[i] *= 1 - 0.8 * std::exp(-0.5 * distance * distance);
    }
  };
  for (int g = turn->visible; g < ledger().generations(); ++g) {
    for (const SearchLedger::Entry& entry : ledger().generation(g)) {
      if (!entry.candidate.trace.empty()) penalize(entry.candidate.point);
    }
  }
  for (const ProposedPoint& pick : turn->picks.proposals()) penalize(pick.candidate.point);
  for (size_t left = choices.size(); left > 0 && !turn->picks.full(); --left) {
    const size_t best = static_cast<size_t>(std::ranges::max_element(scores) - scores.begin());
    if (Take(choices[best], Origin::kSurrogate, turn)) penalize(choices[best]);
    scores[best] = -1;
  }
}

std::vector<Point> BayesianSearch::Choices(const Turn& turn, Rng* rng) const {
  constexpr size_t kCentres = 5;
  std::vector<Point> points;
  absl::flat_hash_set<Point> known;
  const auto add = [&](const Point& point) {
    if (!turn.seen.Proposed(point) && known.insert(point).second) points.push_back(point);
  };
  const auto fastest = ledger().Fastest(turn.visible);
  for (size_t c = 0; c < std::min(kCentres, fastest.size()); ++c) {
    for (const Point& point : moves().Around(fastest[c]->candidate.point)) add(point);
  }
  if (moves().CountUpTo(kMostChoices)) {
    for (const Point& point : moves().All()) add(point);
  } else {
    for (int i = 0; i < kMostChoices; ++i) add(moves().Random(rng));
  }
  // Points of one probability are taken in a random order.
  for (size_t i = points.size(); i-- > 1;) std::swap(points[i], points[rng->Below(static_cast<int>(i + 1))]);
  return points;
}

std::vector<double> BayesianSearch::Probabilities(const std::vector<Point>& points, int visible) const {
  constexpr double kBestShare = 0.1;
  constexpr size_t kFewest = 3;
  const auto fastest = ledger().Fastest(visible);
  const size_t good = std::max(kFewest, static_cast<size_t>(std::lround(kBestShare * fastest.size())));
  NumberTable known, asked;
  std::vector<float> labels;
  for (size_t i = 0; i < fastest.size(); ++i) {
    AppendRow(fastest[i]->candidate.point, &known);
    labels.push_back(i < good);
  }
  for (int g = 0; g < visible; ++g) {
    for (const SearchLedger::Entry& entry : ledger().generation(g)) {
      if (entry.outcome->ok() || entry.outcome->given_up() || entry.candidate.trace.empty()) continue;
      AppendRow(entry.candidate.point, &known);
      labels.push_back(0);
    }
  }
  for (const Point& point : points) AppendRow(point, &asked);
  if (points.empty()) return {};
  return classifier_->Classify(known, labels, std::vector<float>(labels.size(), 1), asked);
}

}  // namespace mycc
