#include "worker/undisturbed.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/status.h"
#include "worker/timer.h"

namespace mycc {
namespace {

// A disturbed timing is repeated after ever longer pauses, in which the neighbour may finish.
constexpr auto kFirstPause = std::chrono::milliseconds(25);
constexpr int kCalibrations = 5;
constexpr double kDisturbedRatio = 1.15;

}  // namespace

bool IsDisturbed(double seconds, double usual) { return usual > 0 && seconds > kDisturbedRatio * usual; }

absl::StatusOr<std::vector<v1::Timing>> TimeUndisturbed(
    int attempts, double usual_baseline_seconds, const std::function<absl::StatusOr<double>()>& time_baseline,
    const std::function<absl::StatusOr<std::vector<v1::Timing>>()>& time) {
  double usual = usual_baseline_seconds;
  for (int i = 0; usual_baseline_seconds <= 0 && i < kCalibrations; ++i) {
    MYCC_ASSIGN_OR_RETURN(const double seconds, time_baseline());
    usual = i == 0 ? seconds : std::min(usual, seconds);
  }
  std::vector<v1::Timing> best;
  double best_baseline = 0;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(kFirstPause * (1 << (attempt - 1)));
    MYCC_ASSIGN_OR_RETURN(const double before, time_baseline());
    MYCC_ASSIGN_OR_RETURN(std::vector<v1::Timing> timings, time());
    MYCC_ASSIGN_OR_RETURN(const double after, time_baseline());
    const double baseline = std::max(before, after);
    if (attempt == 0 || baseline < best_baseline) {
      best = std::move(timings);
      best_baseline = baseline;
    }
    if (!IsDisturbed(best_baseline, usual)) break;
  }
  for (v1::Timing& timing : best) {
    timing.set_baseline_seconds(best_baseline);
    timing.set_relative_to_baseline(timing.seconds() / best_baseline);
  }
  return best;
}

v1::Timing OneSample(v1::TimingProtocol protocol, double seconds) {
  v1::Timing timing;
  timing.set_protocol(protocol);
  timing.set_timer_version(kTimerVersion);
  timing.add_samples_seconds(seconds);
  timing.set_seconds(seconds);
  timing.set_ci_low_seconds(seconds);
  timing.set_ci_high_seconds(seconds);
  return timing;
}

}  // namespace mycc
