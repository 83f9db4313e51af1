// A model of one task that knows decisions alone, no code: what a point takes, how sure that is, and whether
// it fails. It learns from a handful of measured points what the task's own decisions do. Deterministic.
// Thread rule: thread-compatible. No I/O.
#pragma once

#include <optional>
#include <vector>

#include "tuner/search/gaussian_process.h"
#include "tuner/space/refit.h"

namespace mycc {

// The knowledge of a point before it is measured.
struct Guess {
  double seconds = 1;  // an estimate, in any unit; the same for all points where nothing is known
  double failure_probability = 0;
};

class DecisionModel {
 public:
  struct Row {
    Point point;
    std::optional<double> seconds;  // absent when it failed
    Guess guess;
  };
  struct Opinion {
    GaussianProcess::Query time, success;
    Guess guess;
    double promise = 0;  // the expected improvement of log(seconds), times the probability of success
  };

  explicit DecisionModel(const std::vector<Sketch>& sketches);

  // From scratch. Guesses count only if they explain the rows better than their mean does.
  void Fit(const std::vector<Row>& rows);
  Opinion Ask(const Point& point, const Guess& guess) const;
  // A cheap opinion of points about which nothing is known before: the log of the expected seconds over the
  // probability of success. Only differences mean something.
  double Expect(const Point& point) const;
  // Whether guesses differ, and count.
  bool follows_guesses() const { return follows_guesses_; }
  // The point will be measured: others near it promise less.
  void Assume(const Opinion& opinion);
  // Brings an opinion up to date with what was assumed since.
  void Refresh(Opinion* opinion) const;

 private:
  std::vector<int> Encode(const Point& point) const;
  void SetPromise(Opinion* opinion) const;

  std::vector<Choice> defaults_;  // of each sketch
  size_t axes_ = 1;               // the sketch, and the decisions of all
  GaussianProcess time_, success_;
  bool believes_guesses_ = true;
  bool follows_guesses_ = false;
  bool has_failures_ = false;
  std::optional<double> best_;  // log of the least seconds
};

}  // namespace mycc
