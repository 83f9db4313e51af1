#include "worker/timer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace mycc {
namespace {

constexpr double kSampleSeconds = 50e-6;  // shorter samples are made of several calls
constexpr int kMaxCallsPerSample = 100000;
constexpr int kMinSamples = 7, kMaxSamples = 400, kCheckEvery = 4;
constexpr double kNarrow = 0.01;  // half the interval's width over the median
// A probe of one warm call is rough, so it drops only candidates that are far behind.
constexpr double kProbeBehind = 3, kSamplesBehind = 1.25;
constexpr int kProbeSamples = 2;
// A pacer that is slower still was stopped in the middle of its sample, and says nothing of another one.
constexpr double kMostSlowness = 3;

bool IsNarrow(const MedianInterval& interval) {
  return (interval.high - interval.low) / 2 <= kNarrow * interval.median;
}

// Takes samples of a call, and what they would have been at a moment of usual slowness.
class CorrectedSampler {
 public:
  CorrectedSampler(const TimingPlan& plan, const TimedCall& timed, const std::function<double()>& now)
      : timed_(timed), now_(now), warms_up_(timed.slowness && plan.protocol == v1::TIMING_PROTOCOL_WARM) {
    if (timed_.slowness) slowness_ = timed_.slowness();
  }

  double Take(int calls) {
    if (warms_up_) timed_.call();  // the other kernel has used the caches
    const double sample = SampleOf(timed_, calls, now_);
    taken_.push_back(sample);
    if (!timed_.slowness) return sample;
    const double before = std::exchange(slowness_, timed_.slowness());
    return sample / std::min({before, slowness_, kMostSlowness});
  }
  // The last samples, as they were.
  std::vector<double> Last(size_t count) const {
    return {taken_.end() - static_cast<std::ptrdiff_t>(count), taken_.end()};
  }

 private:
  const TimedCall& timed_;
  const std::function<double()>& now_;
  const bool warms_up_;
  double slowness_ = 1;
  std::vector<double> taken_;
};

v1::Timing TimingOf(v1::TimingProtocol protocol, const std::vector<double>& samples) {
  const MedianInterval interval = MedianOf(samples);
  v1::Timing timing;
  timing.set_protocol(protocol);
  timing.set_timer_version(kTimerVersion);
  timing.mutable_samples_seconds()->Add(samples.begin(), samples.end());
  timing.set_seconds(interval.median);
  timing.set_ci_low_seconds(interval.low);
  timing.set_ci_high_seconds(interval.high);
  return timing;
}

}  // namespace

MedianInterval MedianOf(std::vector<double> samples) {
  MYCC_CHECK(!samples.empty());
  std::ranges::sort(samples);
  const int n = static_cast<int>(samples.size());
  const double median = n % 2 == 1 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
  // The number of samples below the median is binomial(n, 1/2); its 2.5 % quantile, approximately.
  const int rank = static_cast<int>(std::floor(n / 2.0 - 0.98 * std::sqrt(n)));
  const int low = std::clamp(rank, 0, n - 1);
  return {median, samples[low], samples[n - 1 - low]};
}

int CallsPerSample(v1::TimingProtocol protocol, double call_seconds) {
  if (protocol != v1::TIMING_PROTOCOL_WARM) return 1;
  const double calls = std::ceil(kSampleSeconds / std::max(call_seconds, 1e-9));
  return std::clamp(static_cast<int>(calls), 1, kMaxCallsPerSample);
}

double SampleOf(const TimedCall& timed, int calls, const std::function<double()>& now) {
  if (timed.before) timed.before();
  const double begin = now();
  for (int i = 0; i < calls; ++i) timed.call();
  return (now() - begin) / calls;
}

v1::Timing TimeCalls(const TimingPlan& plan, const TimedCall& timed, const std::function<double()>& now) {
  const double start = now();
  CorrectedSampler sampler(plan, timed, now);
  // Two calls warm up the team of threads, the pages and the caches; the second also says how long a call
  // takes.
  sampler.Take(1);
  double probe = sampler.Take(1);
  const int calls = CallsPerSample(plan.protocol, probe);
  if (calls > 1) probe = sampler.Take(calls);

  const bool hopeless = plan.best_seconds > 0 && probe > kProbeBehind * plan.best_seconds;
  const int enough = hopeless ? kProbeSamples : kMaxSamples;
  std::vector<double> samples;
  MedianInterval interval;
  while (static_cast<int>(samples.size()) < enough) {
    samples.push_back(sampler.Take(calls));
    if (now() - start >= plan.budget_seconds) break;
    const int count = static_cast<int>(samples.size());
    // Not after every sample: sorting disturbs the timing.
    if (count < kMinSamples || (count - kMinSamples) % kCheckEvery != 0) continue;
    interval = MedianOf(samples);
    if (IsNarrow(interval)) break;
    if (plan.best_seconds > 0 && interval.low > kSamplesBehind * plan.best_seconds) break;
  }
  v1::Timing timing = TimingOf(plan.protocol, samples);
  const std::vector<double> taken = sampler.Last(samples.size());
  timing.mutable_samples_seconds()->Assign(taken.begin(), taken.end());
  return timing;
}

absl::StatusOr<v1::Timing> TimeCallAtPlacements(const TimingPlan& plan,
                                                const std::function<absl::StatusOr<TimedCall>(int)>& place,
                                                const std::function<double()>& now) {
  const double start = now();
  TimingPlan part = plan;
  part.budget_seconds = plan.budget_seconds / kPlacementsAlone;
  v1::Timing all;
  std::vector<double> medians;
  for (int i = 0; i < kPlacementsAlone; ++i) {
    if (i > 0 && now() - start + plan.placing_seconds >= plan.budget_seconds) break;
    const bool is_behind = i > 1 && plan.best_seconds > 0 &&
                           *std::ranges::min_element(medians) > kSamplesBehind * plan.best_seconds;
    if (is_behind) break;
    MYCC_ASSIGN_OR_RETURN(const TimedCall timed, place(i));
    v1::Timing timing = TimeCalls(part, timed, now);
    medians.push_back(timing.seconds());
    if (i == 0) {
      all = std::move(timing);
    } else {
      all.mutable_samples_seconds()->MergeFrom(timing.samples_seconds());
    }
  }
  if (medians.size() == 1) return all;  // with the interval of its samples
  std::ranges::sort(medians);
  all.set_seconds(medians[(medians.size() - 1) / 2]);
  all.set_ci_low_seconds(medians.front());
  all.set_ci_high_seconds(medians.back());
  return all;
}

absl::StatusOr<v1::Timing> TimeBatches(const TimingPlan& plan, double probe_seconds,
                                       const std::function<absl::StatusOr<std::vector<double>>()>& batch,
                                       const std::function<double()>& now) {
  const double start = now();
  MYCC_ASSIGN_OR_RETURN(std::vector<double> samples, batch());
  if (plan.best_seconds > 0 && probe_seconds > kProbeBehind * plan.best_seconds)
    return TimingOf(plan.protocol, samples);
  samples.clear();  // those warmed the device up
  do {
    MYCC_ASSIGN_OR_RETURN(const std::vector<double> more, batch());
    samples.insert(samples.end(), more.begin(), more.end());
    const MedianInterval interval = MedianOf(samples);
    const bool known = static_cast<int>(samples.size()) >= kMinSamples;
    if (known && IsNarrow(interval)) break;
    if (known && plan.best_seconds > 0 && interval.low > kSamplesBehind * plan.best_seconds) break;
  } while (static_cast<int>(samples.size()) < kMaxSamples && now() - start < plan.budget_seconds);
  return TimingOf(plan.protocol, samples);
}

}  // namespace mycc
