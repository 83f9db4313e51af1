// The progress of a simulation while it runs, for whoever waits for it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "base/mutex.h"

namespace mycc {

// How a search was done, beside its strategy.
struct Manner {
  bool warm = false, noise = false;
  bool operator==(const Manner&) const = default;
};

struct SimulationProgress {
  std::string space, device;  // that is searched now
  std::string strategy;       // likewise
  Manner manner;
  int64_t ended = 0, searches = 0;  // those that have ended, and all
  int64_t evaluations = 0;          // of all searches so far
};
// Called by any thread, by one at a time, after each generation and after each search. It must be quick.
using SimulationWatch = std::function<void(const SimulationProgress&)>;

// Counts for a watch, which may be null. Thread rule: thread-safe.
class WatchedSimulation {
 public:
  WatchedSimulation(SimulationWatch watch, int64_t searches) : watch_(std::move(watch)) {
    progress_.searches = searches;
  }

  void Begin(const std::string& space, const std::string& device, const std::string& strategy,
             const Manner& manner);
  void Evaluated(int64_t evaluations);
  void Ended();

 private:
  const SimulationWatch watch_;
  Mutex mutex_;
  SimulationProgress progress_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mycc
