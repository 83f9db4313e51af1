// Summarizes repeated timings: the median and its confidence interval. Pure.
#pragma once

#include <cstddef>
#include <vector>

namespace mycc {

// The median with its 95 % confidence interval, by order statistics: no distribution is assumed.
struct MedianInterval {
  // All of 5 samples lie on one side of the median in 6 % of cases, those of 6 in 3 %.
  static constexpr size_t kFewestSamples = 6;

  double median = 0;
  double low = 0, high = 0;  // of fewer samples: the least and the greatest, which hold the median less often
  size_t samples = 0;

  bool is_confident() const { return samples >= kFewestSamples; }
  double relative_width() const { return (high - low) / median; }
};

// REQUIRES: at least one sample.
MedianInterval MedianOf(std::vector<double> samples);

// How many samples to take: a number of them, or until the median is known well enough or the time is up.
struct SamplingPlan {
  int repeats = 0;  // 0: as many as are needed
  double seconds = 1;
};
bool IsEnough(const std::vector<double>& samples, const SamplingPlan& plan, double elapsed_seconds);

}  // namespace mycc
