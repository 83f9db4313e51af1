// Bayesian optimization with a classifier for a surrogate: a random forest learns which points are among the
// best tenth of those measured, failures never are, and the points most likely to be are measured next. Tiao
// et al., "BORE: Bayesian Optimization by Density-Ratio Estimation" (ICML 2021): the class' probability
// orders points as the expected improvement does. Random forests as surrogates: Hutter, Hoos and
// Leyton-Brown, "Sequential Model-Based Optimization for General Algorithm Configuration" (LION 2011).
//
// The points of one generation keep away from each other, and from those that are still being measured, by
// local penalties: Gonzalez et al., "Batch Bayesian Optimization via Local Penalization" (AISTATS 2016).
#pragma once

#include <vector>

#include "tuner/search/classifier.h"
#include "tuner/search/measured.h"

namespace mycc {

class BayesianSearch : public MeasuredSearch {
 public:
  // `classifier` outlives the search.
  BayesianSearch(const SearchConfig& config, std::vector<Sketch> sketches, const std::vector<Trace>& history,
                 Scorer* scorer, Classifier* classifier);

 protected:
  void Fill(Turn* turn) override;

 private:
  // The points among which the classifier chooses: the whole space where it is small, else random ones and
  // the neighbourhoods of the fastest.
  std::vector<Point> Choices(const Turn& turn, Rng* rng) const;
  // A number for each ordered decision, and one for each name.
  void AppendRow(const Point& point, NumberTable* table) const;
  std::vector<double> Probabilities(const std::vector<Point>& points, int visible) const;

  Classifier* const classifier_;
  std::vector<int> first_column_;  // of each sketch
  int width_ = 0;
};

}  // namespace mycc
