// A training sample of the cost model: the features of a candidate and its measured time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tuner/cost/features.h"

namespace mycc {

struct Sample {
  Features features;
  double analytic_seconds = 0;
  std::optional<double> seconds;  // absent when building, running or verifying it failed
  std::string group;              // the task: samples of one group compare with each other

  bool operator==(const Sample&) const = default;
};

// The lesson about a candidate: seconds = analytic seconds * factor.
struct Correction {
  double factor = 1;
  double failure_probability = 0;
  double log_spread = 0;  // standard deviation of ln(factor) among the members of the ensemble
};

}  // namespace mycc
