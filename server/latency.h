// Counts durations in buckets, as Prometheus's histograms do. Unit: seconds. Thread rule: thread-safe; a
// count that is read while another is added may lack it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace mycc {

// The upper bounds of the buckets; durations beyond the last one count in all of them together alone.
inline constexpr std::array<double, 14> kLatencyBounds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                          0.1,    0.25,  0.5,    1,     2.5,  10,    60};

struct LatencyCounts {
  std::array<int64_t, kLatencyBounds.size() + 1> buckets =
      {};  // each alone; the last one is beyond all bounds
  double sum_seconds = 0;
};

class Latency {
 public:
  void Add(double seconds) {
    size_t bucket = 0;
    while (bucket < kLatencyBounds.size() && seconds > kLatencyBounds[bucket]) ++bucket;
    buckets_[bucket].fetch_add(1, std::memory_order_relaxed);
    sum_nanos_.fetch_add(static_cast<int64_t>(seconds * 1e9), std::memory_order_relaxed);
  }

  LatencyCounts counts() const {
    LatencyCounts counts;
    for (size_t i = 0; i < buckets_.size(); ++i)
      counts.buckets[i] = buckets_[i].load(std::memory_order_relaxed);
    counts.sum_seconds = static_cast<double>(sum_nanos_.load(std::memory_order_relaxed)) / 1e9;
    return counts;
  }

 private:
  std::array<std::atomic<int64_t>, kLatencyBounds.size() + 1> buckets_ = {};
  std::atomic<int64_t> sum_nanos_ = 0;
};

// The durations that a server's loop measures.
struct LoopLatencies {
  Latency lease;   // from a Lease call to an answer with trials: its wait for work too
  Latency report;  // from a Report call to its answer: the commit too
  Latency commit;  // from a change of the log to its commit
  Latency turn;    // of the loop: how long it was deaf
};

}  // namespace mycc
