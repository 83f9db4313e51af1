// Summarizes repeated timings: the median and its confidence interval. Pure.
#pragma once

#include <vector>

namespace mycc {

// The median with its 95 % confidence interval, by order statistics: no distribution is assumed.
struct MedianInterval {
  double median = 0, low = 0, high = 0;

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
