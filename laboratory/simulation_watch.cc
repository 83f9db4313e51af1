#include "laboratory/simulation_watch.h"

namespace mycc {

void WatchedSimulation::Begin(const std::string& space, const std::string& device,
                              const std::string& strategy, const Manner& manner) {
  const MutexLock lock(&mutex_);
  progress_.space = space;
  progress_.device = device;
  progress_.strategy = strategy;
  progress_.manner = manner;
}

void WatchedSimulation::Evaluated(int64_t evaluations) {
  const MutexLock lock(&mutex_);
  progress_.evaluations += evaluations;
  if (watch_) watch_(progress_);
}

void WatchedSimulation::Ended() {
  const MutexLock lock(&mutex_);
  ++progress_.ended;
  if (watch_) watch_(progress_);
}

}  // namespace mycc
