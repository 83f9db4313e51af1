// Times a call: warms up, repeats until the median is precise enough, and stops early for slow candidates.
// Pure but for the clock and the calls that are passed in. Thread rule: functions are re-entrant.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/records.pb.h"
#include "proto/timer_version.h"  // of the rules below

namespace mycc {

struct TimingPlan {
  v1::TimingProtocol protocol = v1::TIMING_PROTOCOL_WARM;
  double budget_seconds = 0.1;  // ends the repetition; one call is always made
  double best_seconds = 0;      // of another candidate; 0: none yet
  double placing_seconds = 0;   // that one placement in memory takes more, before its calls, about
};

// A candidate whose first call takes longer than kSlowFirstCallSeconds and kSlowFirstCallFactor times the
// best one's time is not worth a second call. First calls are slow for other reasons too, hence the margin.
constexpr double kSlowFirstCallFactor = 20, kSlowFirstCallSeconds = 0.02;

struct MedianInterval {
  double median = 0;
  // A 95 % confidence interval from order statistics: no assumption about the distribution.
  double low = 0, high = 0;
};
// REQUIRES: samples is not empty.
MedianInterval MedianOf(std::vector<double> samples);

// The number of calls in a sample, for a kernel that takes about `call_seconds`: with warm caches as many as
// the clock's precision needs, else one.
int CallsPerSample(v1::TimingProtocol protocol, double call_seconds);

// A call to time, and what brings memory into the protocol's state.
struct TimedCall {
  std::function<void()> call;
  std::function<void()> before = nullptr;  // each sample, untimed
  // How slow this moment is, by another kernel's sample: 1 at a usual one. Each sample of the call is divided
  // by the lesser of those before and after it, since one of them may have been interrupted.
  std::function<double()> slowness = nullptr;
};

// The seconds of one sample: the mean of `calls` calls.
double SampleOf(const TimedCall& timed, int calls, const std::function<double()>& now);

// Times a call. A sample is the mean of its calls. `now` is in seconds. The timing has the samples as they
// were; its seconds and interval are of moments of usual slowness.
//
// A candidate that is clearly slower than `best_seconds` is dropped after a probe, with few samples and a
// wide interval.
v1::Timing TimeCalls(const TimingPlan& plan, const TimedCall& timed, const std::function<double()>& now);

// The same at up to kPlacementsAlone placements in memory (codegen/runtime/placement.h), each with its part
// of the time, as long as there is time for one more: at one placement, and in the few milliseconds there,
// the same code may be half as slow again. `seconds` is the lower median of the placements' medians, since
// what disturbs makes slower, and the interval reaches from the fastest to the slowest. A candidate is
// dropped when it is clearly slower than `best_seconds` at two. `place` makes the call at a placement,
// counted from 0, instead of the ones before; what it fails with, this returns.
constexpr int kPlacementsAlone = 4;
absl::StatusOr<v1::Timing> TimeCallAtPlacements(const TimingPlan& plan,
                                                const std::function<absl::StatusOr<TimedCall>(int)>& place,
                                                const std::function<double()>& now);

// The same for a device that takes several samples at a time, by `batch`. The first batch warms it up, unless
// `probe_seconds`, the time of one earlier call, shows that the candidate is far slower.
absl::StatusOr<v1::Timing> TimeBatches(const TimingPlan& plan, double probe_seconds,
                                       const std::function<absl::StatusOr<std::vector<double>>()>& batch,
                                       const std::function<double()>& now);

}  // namespace mycc
