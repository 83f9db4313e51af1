// Cholesky factors of the covariance, and coordinate search of the lengths.
#include "tuner/search/gaussian_process.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "base/check.h"

namespace mycc {
namespace {

constexpr double kJitter = 1e-6;
constexpr double kPriorNoise = 1e-3;
constexpr double kPriorWeight = 0.5;  // of a squared log length
// Rows that the lengths are chosen on. Each of some forty tries costs the cube of their number.
constexpr size_t kMostFitted = 96;

// The sum of a[i] * b[i] in a fixed order that vectorizes.
double Dot(const double* a, const double* b, size_t n) {
  double sums[4] = {0, 0, 0, 0};
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (size_t lane = 0; lane < 4; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (; i < n; ++i) sums[0] += a[i] * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace

GaussianProcess::GaussianProcess(std::vector<Axis> axes) : axes_(std::move(axes)) { SetTables(Prior()); }

// Random points differ in all axes, on average by a third of an ordered one. The lengths make them a fifth
// alike, however many axes there are.
GaussianProcess::Lengths GaussianProcess::Prior() const {
  size_t moving = 0;
  for (const Axis& axis : axes_) moving += axis.choices > 1;
  const double axes = static_cast<double>(std::max<size_t>(1, moving));
  Lengths prior;
  for (const Axis& axis : axes_) {
    prior.along.push_back(std::log(0.2 * axes));
    prior.change.push_back(std::log(axis.ordered ? axes : 0.5 * axes));
  }
  prior.noise = std::log(kPriorNoise);
  return prior;
}

void GaussianProcess::SetTables(const Lengths& lengths) {
  table_.assign(axes_.size(), {});
  for (size_t a = 0; a < axes_.size(); ++a) {
    for (int apart = 0; apart < axes_[a].choices; ++apart) {
      double distance = apart == 0 ? 0 : std::exp(-lengths.change[a]);
      if (axes_[a].ordered && apart > 0)
        distance += apart / (axes_[a].choices - 1.0) * std::exp(-lengths.along[a]);
      table_[a].push_back(distance);
    }
  }
  noise_ = std::exp(lengths.noise) + kJitter;
}

double GaussianProcess::Covariance(const std::vector<int>& a, const std::vector<int>& b) const {
  double distance = 0;
  for (size_t axis = 0; axis < table_.size(); ++axis) distance += table_[axis][std::abs(a[axis] - b[axis])];
  return std::exp(-distance);
}

void GaussianProcess::Factor(const Lengths& lengths) {
  SetTables(lengths);
  factor_.assign(points_.size(), {});
  for (size_t i = 0; i < points_.size(); ++i) {
    std::vector<double>& row = factor_[i];
    row.resize(i + 1);
    for (size_t j = 0; j < i; ++j) {
      double distance = 0;
      for (const size_t axis : varying_)
        distance += table_[axis][std::abs(points_[i][axis] - points_[j][axis])];
      row[j] = (std::exp(-distance) - Dot(row.data(), factor_[j].data(), j)) / factor_[j][j];
    }
    row[i] = std::sqrt(std::max(kJitter, 1 + noise_ - Dot(row.data(), row.data(), i)));
  }
}

void GaussianProcess::Solve(size_t first, std::vector<double>* right) const {
  for (size_t i = first; i < right->size(); ++i)
    (*right)[i] = ((*right)[i] - Dot(right->data(), factor_[i].data(), i)) / factor_[i][i];
}

double GaussianProcess::Density(const Lengths& lengths) {
  Factor(lengths);
  solved_ = values_;
  Solve(0, &solved_);
  const double n = static_cast<double>(values_.size());
  scale_ = std::max(1e-9, Dot(solved_.data(), solved_.data(), solved_.size()) / n);
  double density = 0.5 * n * std::log(scale_);
  for (size_t i = 0; i < factor_.size(); ++i) density += std::log(factor_[i][i]);
  const Lengths prior = Prior();
  const auto squared = [](double x) { return x * x; };
  for (const size_t a : varying_) {
    density += kPriorWeight / 2 * squared(lengths.along[a] - prior.along[a]);
    density += kPriorWeight / 2 * squared(lengths.change[a] - prior.change[a]);
  }
  // Noise is known less well than lengths.
  return density + kPriorWeight / 2 * squared((lengths.noise - prior.noise) / 2);
}

void GaussianProcess::Fit(const std::vector<std::vector<int>>& points, const std::vector<double>& values) {
  MYCC_CHECK(points.size() == values.size()) << points.size() << " points, " << values.size() << " values";
  points_ = points;
  varying_.clear();
  for (size_t a = 0; a < axes_.size(); ++a) {
    const bool varies =
        std::ranges::any_of(points_, [&](const std::vector<int>& p) { return p[a] != points_[0][a]; });
    if (varies) varying_.push_back(a);
  }
  const double n = static_cast<double>(std::max<size_t>(1, values.size()));
  mean_ = 0;
  for (const double value : values) mean_ += value / n;
  double squares = 0;
  for (const double value : values) squares += (value - mean_) * (value - mean_) / n;
  deviation_ = values.empty() ? 1 : std::max(1e-6, std::sqrt(squares));
  values_.clear();
  for (const double value : values) values_.push_back((value - mean_) / deviation_);

  misfit_ = 0;
  scale_ = 1;
  if (values.size() < 2) {
    Factor(Prior());
    solved_ = values_;
    Solve(0, &solved_);
    SetWeights();
    return;
  }
  const std::vector<double> standardized = values_;
  if (points.size() > kMostFitted) {
    for (size_t i = 0; i < kMostFitted; ++i) {
      points_[i] = points[i * points.size() / kMostFitted];
      values_[i] = standardized[i * points.size() / kMostFitted];
    }
    points_.resize(kMostFitted);
    values_.resize(kMostFitted);
  }
  const Lengths best = BestLengths();
  points_ = points;
  values_ = standardized;
  misfit_ = Density(best) + n * std::log(deviation_);
  SetWeights();
}

// Solves transposed factor * weights = solved.
void GaussianProcess::SetWeights() {
  weights_ = solved_;
  for (size_t i = weights_.size(); i-- > 0;) {
    weights_[i] /= factor_[i][i];
    for (size_t j = 0; j < i; ++j) weights_[j] -= factor_[i][j] * weights_[i];
  }
}

double GaussianProcess::Mean(const std::vector<int>& point) const {
  double mean = 0;
  for (size_t i = 0; i < weights_.size(); ++i) mean += weights_[i] * Covariance(point, points_[i]);
  return mean_ + deviation_ * mean;
}

// Coordinate search, with steps that halve. The first sweep is the boldest.
GaussianProcess::Lengths GaussianProcess::BestLengths() {
  Lengths best = Prior();
  double density = Density(best);
  std::vector<double*> moves;
  for (const size_t a : varying_) {
    if (axes_[a].ordered) moves.push_back(&best.along[a]);
    moves.push_back(&best.change[a]);
  }
  moves.push_back(&best.noise);
  for (const double step : {1.2, 0.6}) {
    for (double* const length : moves) {
      const double before = *length;
      for (const double moved : {before + step, before - step}) {
        *length = moved;
        const double there = Density(best);
        if (there < density) {
          density = there;
          break;
        }
        *length = before;
      }
    }
  }
  return best;
}

GaussianProcess::Query GaussianProcess::Ask(std::vector<int> point) const {
  Query query{std::move(point)};
  query.mean = mean_;
  query.variance = scale_ * deviation_ * deviation_;
  Refresh(&query);
  query.mean += deviation_ * Dot(query.solved.data(), solved_.data(), solved_.size());
  return query;
}

void GaussianProcess::Refresh(Query* query) const {
  const size_t first = query->solved.size();
  for (size_t i = first; i < points_.size(); ++i)
    query->solved.push_back(Covariance(query->point, points_[i]));
  Solve(first, &query->solved);
  for (size_t i = first; i < query->solved.size(); ++i) query->known += query->solved[i] * query->solved[i];
  query->variance = scale_ * deviation_ * deviation_ * std::max(1e-10, 1 - query->known);
}

void GaussianProcess::Assume(const Query& query) {
  Query current = query;
  Refresh(&current);
  points_.push_back(current.point);
  std::vector<double> row = std::move(current.solved);
  row.push_back(std::sqrt(std::max(kJitter, 1 + noise_ - current.known)));
  factor_.push_back(std::move(row));
  solved_.push_back(0);  // it is at its mean, so nothing is new
}

}  // namespace mycc
