// Gaussian process regression over discrete points: a smooth guess of a value from a few noisy ones, with its
// uncertainty.
//
// Two points are alike as exp(-sum over their axes of a distance / a length). An ordered axis has a length
// for moving along it and one for any change at all, so that numbers that are names in disguise do no harm.
// This kernel makes rough surfaces, as measured times are, and needs no derivative. The lengths and the noise
// are those of the greatest posterior density: marginal likelihood times a prior around lengths that suit a
// space of this many axes. So few values change little. Deterministic. Thread rule: thread-compatible. No
// I/O.
#pragma once

#include <cstddef>
#include <vector>

namespace mycc {

class GaussianProcess {
 public:
  struct Axis {
    int choices = 1;
    bool ordered = true;
  };
  // A point about which something is asked. It is kept while rows are assumed, so that each costs little.
  struct Query {
    std::vector<int> point;
    double mean = 0;
    double variance = 0;           // of the value without its noise
    std::vector<double> solved{};  // its covariances with the rows, divided by the factor
    double known = 0;  // the sum of their squares: the share of the variance that the rows explain
  };

  explicit GaussianProcess(std::vector<Axis> axes);

  // From scratch, on values of points; both of one length. Without rows every query gets mean 0, variance 1.
  // Where there are many rows, a part spread over all of them chooses the lengths.
  void Fit(const std::vector<std::vector<int>>& points, const std::vector<double>& values);
  // The negative log of the posterior density of the fitted lengths: the smaller, the better the values are
  // explained. Comparable between fits of the same points.
  double misfit() const { return misfit_; }

  Query Ask(std::vector<int> point) const;
  // The same mean without its variance, for a small part of the cost.
  double Mean(const std::vector<int>& point) const;
  // Takes the query's value for measured, at its mean: no mean changes, the variances near it shrink.
  void Assume(const Query& query);
  // Brings a query up to date with the rows that were assumed since.
  void Refresh(Query* query) const;

 private:
  struct Lengths {
    std::vector<double> along, change;  // logs, by axis
    double noise = 0;                   // log of the variance of the noise / of the value
  };

  Lengths Prior() const;
  // The lengths of the greatest posterior density for the current rows.
  Lengths BestLengths();
  // The negative log density of the standardized values; fills in the factor.
  double Density(const Lengths& lengths);
  void Factor(const Lengths& lengths);
  void SetTables(const Lengths& lengths);
  double Covariance(const std::vector<int>& a, const std::vector<int>& b) const;
  void SetWeights();
  // Solves factor * x = right in place, for rows from `first` on.
  void Solve(size_t first, std::vector<double>* right) const;

  const std::vector<Axis> axes_;
  std::vector<size_t> varying_;  // axes in which the rows differ
  std::vector<std::vector<int>> points_;
  std::vector<double> values_;               // standardized
  double mean_ = 0, deviation_ = 1;          // of the values
  std::vector<std::vector<double>> table_;   // by axis and distance: the distance in lengths
  std::vector<std::vector<double>> factor_;  // lower triangular, by row
  std::vector<double> solved_;               // values divided by the factor
  std::vector<double> weights_;              // of the fitted rows' covariances in a mean
  double noise_ = 0, scale_ = 1, misfit_ = 0;
};

}  // namespace mycc
