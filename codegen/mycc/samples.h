// What repeated timings say: the median and how well it is known. Pure.
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

}  // namespace mycc
