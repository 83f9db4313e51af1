#include "base/trimmed_mean.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/check.h"

namespace mycc {
namespace {

// The 97.5 % quantile of Student's t. Above the table an expansion in 1 / degrees, right to 0.1 %.
double StudentQuantile(size_t degrees) {
  static constexpr double kQuantiles[] = {12.706, 4.303, 3.182, 2.776, 2.571,
                                          2.447,  2.365, 2.306, 2.262, 2.228};
  if (degrees <= std::size(kQuantiles)) return kQuantiles[degrees - 1];
  const double inverse = 1 / static_cast<double>(degrees);
  return 1.96 + inverse * (2.372 + 2.823 * inverse);
}

}  // namespace

TrimmedMean TrimmedMeanOf(std::vector<double> values) {
  MYCC_CHECK(!values.empty());
  std::ranges::sort(values);
  const size_t count = values.size(), trimmed = count / 5, kept = count - 2 * trimmed;
  // Winsorized: what is left out counts as its nearest neighbour that is not.
  std::fill_n(values.begin(), trimmed, values[trimmed]);
  std::fill_n(values.rbegin(), trimmed, values[count - 1 - trimmed]);
  double sum = 0, kept_sum = 0, squares = 0;
  for (size_t i = 0; i < count; ++i) {
    sum += values[i];
    if (i >= trimmed && i < count - trimmed) kept_sum += values[i];
  }
  for (const double value : values) squares += std::pow(value - sum / static_cast<double>(count), 2);
  const double mean = kept_sum / static_cast<double>(kept);
  if (kept == 1) return {mean, mean, mean};
  const double reach =
      StudentQuantile(kept - 1) * std::sqrt(squares / static_cast<double>(kept * (kept - 1)));
  return {mean, mean - reach, mean + reach};
}

TrimmedMean TrimmedGeometricMeanOf(std::vector<double> values) {
  for (double& value : values) value = std::log(value);
  const TrimmedMean mean = TrimmedMeanOf(std::move(values));
  return {std::exp(mean.mean), std::exp(mean.low), std::exp(mean.high)};
}

}  // namespace mycc
