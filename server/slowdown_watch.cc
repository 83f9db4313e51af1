#include "server/slowdown_watch.h"

#include <algorithm>
#include <vector>

namespace mycc {
namespace {

constexpr size_t kLatest = 6, kHistory = 256, kEnough = 12;
constexpr double kFailing = 1.4;

double QuantileOf(const std::deque<double>& values, double share) {
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))];
}

}  // namespace

void SlowdownWatch::Add(double seconds) {
  latest_.push_back(seconds);
  if (latest_.size() > kLatest) latest_.pop_front();
  history_.push_back(seconds);
  if (history_.size() > kHistory) history_.pop_front();
}

double SlowdownWatch::usual_seconds() const {
  // The lower quartile: a device is disturbed now and then, and never faster than itself.
  if (history_.size() < kEnough) return usual_;
  const double own = QuantileOf(history_, 0.25);
  return usual_ > 0 ? std::min(usual_, own) : own;
}

double SlowdownWatch::ratio() const {
  const double usual = usual_seconds();
  return usual > 0 && !latest_.empty() ? QuantileOf(latest_, 0.5) / usual : 0;
}

bool SlowdownWatch::failing() const {
  const double usual = usual_seconds();
  return usual > 0 && latest_.size() == kLatest && QuantileOf(latest_, 0) > kFailing * usual;
}

}  // namespace mycc
