#include "worker/turns.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/status.h"

namespace mycc {
namespace {

// They stand within a few hundredths of each other, so they have to be known better than that.
constexpr double kNarrowInTurns = 0.002;  // half the interval's width over the median
constexpr size_t kFewestTurns = 2, kEnoughTurns = 12, kMostTurns = 200, kCheckEveryTurns = 4;
constexpr double kLongSeconds = 0.01;  // of a call, which has warmed up before its end

double GeometricMean(const Turn& turn) {
  double logs = 0;
  for (const double sample : turn) logs += std::log(sample);
  return std::exp(logs / static_cast<double>(turn.size()));
}

bool AreNarrow(const std::vector<v1::Timing>& timings) {
  return std::all_of(timings.begin(), timings.end(), [](const v1::Timing& timing) {
    return (timing.ci_high_seconds() - timing.ci_low_seconds()) / 2 <= kNarrowInTurns * timing.seconds();
  });
}

}  // namespace

int CandidateAt(int i, int size) { return i < size ? i : 2 * size - 1 - i; }

std::vector<v1::Timing> TimingsOf(v1::TimingProtocol protocol, const std::vector<Turn>& turns) {
  MYCC_CHECK(!turns.empty());
  std::vector<double> moments;
  moments.reserve(turns.size());
  for (const Turn& turn : turns) moments.push_back(GeometricMean(turn));
  const double usual = MedianOf(moments).median;
  std::vector<v1::Timing> timings;
  for (size_t candidate = 0; candidate < turns[0].size(); ++candidate) {
    v1::Timing& timing = timings.emplace_back();
    std::vector<double> relative;
    relative.reserve(turns.size());
    for (size_t i = 0; i < turns.size(); ++i) {
      timing.add_samples_seconds(turns[i][candidate]);
      relative.push_back(turns[i][candidate] / moments[i]);
    }
    const MedianInterval interval = MedianOf(std::move(relative));
    timing.set_protocol(protocol);
    timing.set_timer_version(kTimerVersion);
    timing.set_seconds(interval.median * usual);
    timing.set_ci_low_seconds(interval.low * usual);
    timing.set_ci_high_seconds(interval.high * usual);
  }
  return timings;
}

absl::StatusOr<std::vector<v1::Timing>> TimeTurns(
    const TimingPlan& plan, const std::function<absl::StatusOr<std::vector<Turn>>()>& batch,
    const std::function<double()>& now) {
  const double start = now();
  std::vector<Turn> turns;
  size_t next_check = kEnoughTurns;  // not after every turn: sorting disturbs the timing
  do {
    MYCC_ASSIGN_OR_RETURN(const std::vector<Turn> more, batch());
    turns.insert(turns.end(), more.begin(), more.end());
    if (turns.size() < next_check) continue;
    if (AreNarrow(TimingsOf(plan.protocol, turns))) break;
    next_check = turns.size() + kCheckEveryTurns;
  } while (turns.size() < kFewestTurns || (turns.size() < kMostTurns && now() - start < plan.budget_seconds));
  return TimingsOf(plan.protocol, turns);
}

std::vector<v1::Timing> TimeCallsInTurn(const TimingPlan& plan, const std::vector<TimedCall>& calls,
                                        const std::function<double()>& now) {
  const bool warm = plan.protocol == v1::TIMING_PROTOCOL_WARM;
  struct Manner {
    int repeats;
    bool warms_up;
  };
  std::vector<Manner> manners;
  for (const TimedCall& call : calls) {
    SampleOf(call, 1, now);
    const double probe = SampleOf(call, 1, now);
    manners.push_back({CallsPerSample(plan.protocol, probe), warm && probe < kLongSeconds});
  }
  const int size = static_cast<int>(calls.size());
  const auto turn = [&]() -> absl::StatusOr<std::vector<Turn>> {
    Turn means(calls.size());
    for (int i = 0; i < 2 * size; ++i) {
      const int candidate = CandidateAt(i, size);
      if (manners[candidate].warms_up) calls[candidate].call();
      means[candidate] += SampleOf(calls[candidate], manners[candidate].repeats, now) / 2;
    }
    return std::vector<Turn>{std::move(means)};
  };
  return *TimeTurns(plan, turn, now);  // calls do not fail
}

}  // namespace mycc
