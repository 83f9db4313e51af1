// The cost of each further percent of a job's weighted latency: the trials and the time until it had fallen
// by that. Unit: seconds. Thread rule: thread-compatible.
#pragma once

#include <cstdint>
#include <vector>

namespace mycc {

struct Milestone {
  int64_t trials = 0;  // finished until then
  double elapsed_seconds = 0;
  double latency_seconds = 0;
};

class Milestones {
 public:
  // The launches of each task; tasks without any do not count.
  explicit Milestones(std::vector<double> counts);

  // The time of a task that the job does not search, which counts as it was first known; 0: it is searched
  // now.
  void SetKnown(uint32_t task, double seconds);
  // A task's new best time, the number of finished trials of the job, and the seconds since it began.
  void OnBest(uint32_t task, double seconds, int64_t trials, double elapsed_seconds);
  // The latency once all tasks have a time, then each time that it has fallen by a further percent of that,
  // or by more at once.
  const std::vector<Milestone>& list() const { return list_; }

 private:
  const std::vector<double> counts_;
  std::vector<double> seconds_;  // 0: none yet
  int missing_ = 0;
  int percent_ = 0;  // that the latest milestone has fallen
  std::vector<Milestone> list_;
};

}  // namespace mycc
