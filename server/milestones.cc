#include "server/milestones.h"

#include <cmath>
#include <utility>

namespace mycc {

Milestones::Milestones(std::vector<double> counts) : counts_(std::move(counts)), seconds_(counts_.size(), 0) {
  for (const double count : counts_) missing_ += count > 0 ? 1 : 0;
}

void Milestones::SetKnown(uint32_t task, double seconds) {
  const bool is_known = seconds > 0, was_known = seconds_[task] > 0;
  if (counts_[task] <= 0 || is_known == was_known) return;
  missing_ += is_known ? -1 : 1;
  seconds_[task] = seconds;
}

void Milestones::OnBest(uint32_t task, double seconds, int64_t trials, double elapsed_seconds) {
  if (counts_[task] <= 0 || seconds <= 0) return;
  missing_ -= seconds_[task] == 0 ? 1 : 0;
  seconds_[task] = seconds;
  if (missing_ > 0) return;
  double latency = 0;
  for (size_t i = 0; i < counts_.size(); ++i) latency += counts_[i] * seconds_[i];
  if (!std::isfinite(latency)) return;
  if (!list_.empty()) {
    const int percent = static_cast<int>(100 * (1 - latency / list_.front().latency_seconds));
    if (percent <= percent_) return;
    percent_ = percent;
  }
  list_.push_back({trials, elapsed_seconds, latency});
}

}  // namespace mycc
