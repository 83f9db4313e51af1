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

absl::StatusOr<v1::Timing> TimeUndisturbed(int attempts, double usual_baseline_seconds,
                                           const std::function<absl::StatusOr<double>()>& time_baseline,
                                           const std::function<absl::StatusOr<v1::Timing>()>& time) {
  double usual = usual_baseline_seconds;
  for (int i = 0; usual_baseline_seconds <= 0 && i < kCalibrations; ++i) {
    MYCC_ASSIGN_OR_RETURN(const double seconds, time_baseline());
    usual = i == 0 ? seconds : std::min(usual, seconds);
  }
  v1::Timing best;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(kFirstPause * (1 << (attempt - 1)));
    MYCC_ASSIGN_OR_RETURN(const double before, time_baseline());
    MYCC_ASSIGN_OR_RETURN(v1::Timing timing, time());
    MYCC_ASSIGN_OR_RETURN(const double after, time_baseline());
    timing.set_baseline_seconds(std::max(before, after));
    timing.set_relative_to_baseline(timing.seconds() / timing.baseline_seconds());
    if (attempt == 0 || timing.baseline_seconds() < best.baseline_seconds()) best = std::move(timing);
    if (!IsDisturbed(best.baseline_seconds(), usual)) break;
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
