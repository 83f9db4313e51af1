// Simulated workers for the benchmark of the service (throughput.sh): many of them by few threads, each with
// a connection of its own, over the protocol of real workers. This is the seam at which measuring is
// simulated: a trial takes a time in which nothing is computed. The time and the result are functions of the
// trial's trace; the time is 0.5 to 1.5 times the given one, and equal to it in the mean.
//
// A worker has one device and some lanes, as a worker with a GPU has: one lane leases and reports while the
// device is at the trials of another. Workers begin one after the other, spread over the time of a trial.
// They would still go in step if their trials took equal times: all wait for a job's first trials, and from
// then on each second's load would come in its first 0.3 s. Thread rule: thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/perf/throughput_timers.h"

namespace mycc {

struct WorkersOptions {
  std::string address;
  std::string prefix = "w";  // of their names
  int workers = 100;
  int lanes = 2;
  int batch = 8;              // trials that a lane leases at once
  double trial_seconds = 0;   // that the device is busy for a trial, in the mean
  bool equal_trials = false;  // each trial takes exactly that
};

class SimulatedWorker;

class SimulatedWorkers {
 public:
  explicit SimulatedWorkers(const WorkersOptions& options);
  // Ends their calls and waits for the ends.
  ~SimulatedWorkers();

  struct Counts {
    int64_t kept = 0;         // reports
    int64_t not_kept = 0;     // that were answered otherwise
    int64_t rounds = 0;       // final rounds, which are not among the kept
    int64_t leased = 0;       // trials and rounds
    double busy_seconds = 0;  // of all devices
  };
  Counts counts() const;

 private:
  friend class SimulatedWorker;

  struct Counters {
    std::atomic<int64_t> kept = 0, not_kept = 0, rounds = 0, leased = 0;
  };

  const WorkersOptions options_;
  Counters counters_;
  std::vector<std::unique_ptr<SimulatedWorker>> workers_;
  Timers timers_;  // ends before the workers do
};

}  // namespace mycc
