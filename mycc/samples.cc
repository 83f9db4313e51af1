#include "mycc/samples.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace mycc {

MedianInterval MedianOf(std::vector<double> samples) {
  MYCC_CHECK(!samples.empty());
  std::ranges::sort(samples);
  const int n = static_cast<int>(samples.size());
  // The number of samples below the true median is binomial(n, 1/2); 1.96 standard deviations of it to each
  // side hold 95 %.
  const int reach = static_cast<int>(std::ceil(0.98 * std::sqrt(n)));
  MedianInterval interval;
  interval.samples = samples.size();
  interval.median = n % 2 == 1 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
  interval.low = samples[std::max(0, (n - 1) / 2 - reach)];
  interval.high = samples[std::min(n - 1, n / 2 + reach)];
  return interval;
}

bool IsEnough(const std::vector<double>& samples, const SamplingPlan& plan, double elapsed_seconds) {
  constexpr size_t kFewest = 3, kForTheMedian = 9;
  constexpr double kKnown = 0.01;  // relative width of the median's interval
  const size_t count = samples.size();
  if (plan.repeats > 0) return count >= static_cast<size_t>(plan.repeats);
  if (count < kFewest) return false;
  if (elapsed_seconds > plan.seconds) return true;
  return count >= kForTheMedian && MedianOf(samples).relative_width() < kKnown;
}

}  // namespace mycc
