// All sketches share one model: a point has an axis for the sketch and one for each decision of every sketch,
// those of other sketches at their defaults.
#include "tuner/search/decision_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace mycc {
namespace {

constexpr double kLeastOdds = 0.02;  // of success

std::vector<GaussianProcess::Axis> AxesOf(const std::vector<Sketch>& sketches) {
  std::vector<GaussianProcess::Axis> axes = {{static_cast<int>(sketches.size()), false}};
  for (const Sketch& sketch : sketches) {
    for (const Decision& decision : sketch.space.decisions)
      axes.push_back({static_cast<int>(decision.choices.size()), decision.ordered});
  }
  return axes;
}

// E[max(0, -x)] of a normal x.
double ExpectedBelowZero(double mean, double variance) {
  const double deviation = std::sqrt(variance), z = -mean / deviation;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  const double below = std::erfc(-z / std::numbers::sqrt2) / 2;
  return std::max(0.0, deviation * density - mean * below);
}

}  // namespace

DecisionModel::DecisionModel(const std::vector<Sketch>& sketches)
    : time_(AxesOf(sketches)), success_(AxesOf(sketches)) {
  for (const Sketch& sketch : sketches) {
    defaults_.push_back(sketch.default_choice);
    axes_ += sketch.default_choice.size();
  }
}

std::vector<int> DecisionModel::Encode(const Point& point) const {
  std::vector<int> axes;
  axes.reserve(axes_);
  axes.push_back(point.sketch);
  for (size_t s = 0; s < defaults_.size(); ++s) {
    const Choice& choice = static_cast<int>(s) == point.sketch ? point.choice : defaults_[s];
    axes.insert(axes.end(), choice.begin(), choice.end());
  }
  return axes;
}

void DecisionModel::Fit(const std::vector<Row>& rows) {
  std::vector<std::vector<int>> points, timed;
  std::vector<double> successes, logs, corrections;
  bool guesses_differ = false;
  best_.reset();
  for (const Row& row : rows) {
    points.push_back(Encode(row.point));
    successes.push_back(row.seconds ? 1 : 0);
    if (!row.seconds) continue;
    timed.push_back(points.back());
    logs.push_back(std::log(*row.seconds));
    corrections.push_back(logs.back() - std::log(row.guess.seconds));
    guesses_differ |= std::abs(std::log(row.guess.seconds / rows[0].guess.seconds)) > 1e-9;
    best_ = std::min(best_.value_or(logs.back()), logs.back());
  }
  has_failures_ = timed.size() < points.size();
  if (has_failures_) success_.Fit(points, successes);
  believes_guesses_ = true;
  follows_guesses_ = false;
  time_.Fit(timed, corrections);
  if (!guesses_differ) return;
  const double misfit = time_.misfit();
  time_.Fit(timed, logs);
  believes_guesses_ = misfit <= time_.misfit();
  follows_guesses_ = believes_guesses_;
  if (believes_guesses_) time_.Fit(timed, corrections);
}

DecisionModel::Opinion DecisionModel::Ask(const Point& point, const Guess& guess) const {
  const std::vector<int> axes = Encode(point);
  Opinion opinion{time_.Ask(axes), {}, guess};
  if (has_failures_) opinion.success = success_.Ask(axes);
  SetPromise(&opinion);
  return opinion;
}

double DecisionModel::Expect(const Point& point) const {
  const std::vector<int> axes = Encode(point);
  const double odds = has_failures_ ? std::clamp(success_.Mean(axes), kLeastOdds, 1.0) : 1;
  return time_.Mean(axes) - std::log(odds);
}

void DecisionModel::Assume(const Opinion& opinion) { time_.Assume(opinion.time); }

void DecisionModel::Refresh(Opinion* opinion) const {
  time_.Refresh(&opinion->time);
  SetPromise(opinion);
}

void DecisionModel::SetPromise(Opinion* opinion) const {
  double success = std::max(kLeastOdds, 1 - opinion->guess.failure_probability);
  if (has_failures_) success *= std::clamp(opinion->success.mean, kLeastOdds, 1.0);
  const double guess = believes_guesses_ ? std::log(opinion->guess.seconds) : 0;
  // Before any time is known, the best is what the mean promises.
  const double best = best_.value_or(0);
  opinion->promise = success * ExpectedBelowZero(guess + opinion->time.mean - best, opinion->time.variance);
}

}  // namespace mycc
