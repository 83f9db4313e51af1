// The one timer of the CPU benchmarks: libraries and our own artifacts are timed by the same loop. Warm
// caches, the median of the repetitions, monotonic clock. One thread calls; the timed function may use its
// own team.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace mycc {

// Calls `f` three times to warm up, then at least 7 times and until `budget_seconds` are spent, at most 2000
// times. Returns the median in milliseconds.
template <typename F>
double MedianMilliseconds(F&& f, double budget_seconds) {
  constexpr int kWarmUps = 3;
  constexpr size_t kFewest = 7, kMost = 2000;
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::duration<double, std::milli>;
  for (int i = 0; i < kWarmUps; ++i) f();
  std::vector<double> samples;
  const auto end = Clock::now() + std::chrono::duration<double>(budget_seconds);
  while (samples.size() < kMost && (samples.size() < kFewest || Clock::now() < end)) {
    const auto start = Clock::now();
    f();
    samples.push_back(Milliseconds(Clock::now() - start).count());
  }
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

}  // namespace mycc
