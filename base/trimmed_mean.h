// The mean of a few values that seldom stray far, and how well it is known: a timing at each of several
// placements of code and data in memory. Pure functions.
//
// A fifth of the values at either end is left out, and the interval is Student's, of the winsorized variance
// (Tukey and McLaughlin 1963; Yuen 1974).
#pragma once

#include <cstddef>
#include <vector>

namespace mycc {

struct TrimmedMean {
  double mean = 0;
  double low = 0, high = 0;  // holds the true one in 95 % of cases; of one value, the value itself
};

// REQUIRES: at least one value.
TrimmedMean TrimmedMeanOf(std::vector<double> values);

// The same of the values' logarithms, as factors: for ratios. REQUIRES: values are above 0.
TrimmedMean TrimmedGeometricMeanOf(std::vector<double> values);

}  // namespace mycc
