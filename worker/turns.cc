#include "worker/turns.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "base/status.h"
#include "base/trimmed_mean.h"

namespace mycc {
namespace {

// They stand within a few hundredths of each other, so they have to be known better than that.
constexpr double kNarrowInTurns = 0.002;  // half the interval's width over the median
constexpr size_t kFewestTurns = 2, kEnoughTurns = 12, kMostTurns = 200, kCheckEveryTurns = 4;
constexpr size_t kMostTurnsPlaced = 32;  // at one placement: others tell more than further turns
constexpr double kMostBudgets = 2;       // for the fewest placements: a cold sample may take half a second
constexpr double kLongSeconds = 0.01;    // of a call, which has warmed up before its end

// How slow each turn's moment was: 1 at a usual one. A candidate's samples are compared with its own median,
// and the median of the candidates counts, so that one of them, which was disturbed by itself, is not the
// moment.
std::vector<double> MomentsOf(const std::vector<const Turn*>& turns) {
  const size_t candidates = turns[0]->size();
  std::vector<double> usual;
  for (size_t candidate = 0; candidate < candidates; ++candidate) {
    std::vector<double> samples;
    for (const Turn* turn : turns) samples.push_back((*turn)[candidate]);
    usual.push_back(MedianOf(std::move(samples)).median);
  }
  std::vector<double> moments;
  for (const Turn* turn : turns) {
    std::vector<double> slowness;
    for (size_t candidate = 0; candidate < candidates; ++candidate)
      slowness.push_back((*turn)[candidate] / usual[candidate]);
    moments.push_back(MedianOf(std::move(slowness)).median);
  }
  return moments;
}

bool AreNarrow(const std::vector<v1::Timing>& timings) {
  return std::ranges::all_of(timings, [](const v1::Timing& timing) {
    return (timing.ci_high_seconds() - timing.ci_low_seconds()) / 2 <= kNarrowInTurns * timing.seconds();
  });
}

}  // namespace

int CandidateAt(int i, int size) { return i < size ? i : 2 * size - 1 - i; }

std::vector<v1::Timing> TimingsOf(v1::TimingProtocol protocol, const std::vector<Turn>& turns) {
  return TimingsOf(protocol, std::vector<std::vector<Turn>>{turns});
}

std::vector<v1::Timing> TimingsOf(v1::TimingProtocol protocol,
                                  const std::vector<std::vector<Turn>>& placements) {
  MYCC_CHECK(!placements.empty());
  std::vector<const Turn*> every;
  for (const std::vector<Turn>& turns : placements) {
    MYCC_CHECK(!turns.empty());
    for (const Turn& turn : turns) every.push_back(&turn);
  }
  const std::vector<double> moments = MomentsOf(every);
  std::vector<v1::Timing> timings;
  for (size_t candidate = 0; candidate < placements[0][0].size(); ++candidate) {
    v1::Timing& timing = timings.emplace_back();
    std::vector<double> all, medians;  // of the candidate's samples relative to their moments
    for (const std::vector<Turn>& turns : placements) {
      const size_t begin = all.size();
      for (const Turn& turn : turns) {
        timing.add_samples_seconds(turn[candidate]);
        all.push_back(turn[candidate] / moments[all.size()]);
      }
      medians.push_back(MedianOf({all.begin() + static_cast<std::ptrdiff_t>(begin), all.end()}).median);
    }
    const bool tells = placements.size() >= kFewestPlacements;
    const TrimmedMean placed = TrimmedGeometricMeanOf(std::move(medians));
    const MedianInterval interval =
        tells ? MedianInterval{placed.mean, placed.low, placed.high} : MedianOf(std::move(all));
    timing.set_protocol(protocol);
    timing.set_timer_version(kTimerVersion);
    timing.set_seconds(interval.median);
    timing.set_ci_low_seconds(interval.low);
    timing.set_ci_high_seconds(interval.high);
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

namespace {

// Takes turns of calls, within the same process and at the same addresses.
class CallTurns {
 public:
  CallTurns(v1::TimingProtocol protocol, const std::vector<TimedCall>& calls,
            const std::function<double()>& now)
      : calls_(calls), now_(now) {
    const bool warm = protocol == v1::TIMING_PROTOCOL_WARM;
    for (const TimedCall& call : calls) {
      SampleOf(call, 1, now);
      const double probe = SampleOf(call, 1, now);
      manners_.push_back({CallsPerSample(protocol, probe), warm && probe < kLongSeconds});
    }
  }

  Turn Take(bool reversed) const {
    const int size = static_cast<int>(calls_.size());
    Turn means(calls_.size());
    for (int i = 0; i < 2 * size; ++i) {
      const int at = CandidateAt(i, size), candidate = reversed ? size - 1 - at : at;
      if (manners_[candidate].warms_up) calls_[candidate].call();
      means[candidate] += SampleOf(calls_[candidate], manners_[candidate].repeats, now_) / 2;
    }
    return means;
  }

 private:
  struct Manner {
    int repeats;
    bool warms_up;
  };
  const std::vector<TimedCall>& calls_;
  const std::function<double()>& now_;
  std::vector<Manner> manners_;
};

}  // namespace

std::vector<v1::Timing> TimeCallsInTurn(const TimingPlan& plan, const std::vector<TimedCall>& calls,
                                        const std::function<double()>& now) {
  const CallTurns turns(plan.protocol, calls, now);
  const auto batch = [&turns]() -> absl::StatusOr<std::vector<Turn>> {
    return std::vector<Turn>{turns.Take(/*reversed=*/false)};
  };
  return *TimeTurns(plan, batch, now);  // calls do not fail
}

absl::StatusOr<std::vector<v1::Timing>> TimeCallsAtPlacements(
    const TimingPlan& plan, const std::function<absl::StatusOr<std::vector<TimedCall>>(int)>& place,
    const std::function<double()>& now) {
  const double start = now(), share = plan.budget_seconds / kPlacements;
  std::vector<std::vector<Turn>> placements;
  for (int i = 0; i < kPlacements; ++i) {
    const double spent = now() - start;
    if (placements.size() >= kFewestPlacements && spent >= plan.budget_seconds) break;
    if (i > 0 && spent + plan.placing_seconds >= kMostBudgets * plan.budget_seconds) break;
    MYCC_ASSIGN_OR_RETURN(const std::vector<TimedCall> calls, place(i));
    const CallTurns turns(plan.protocol, calls, now);
    std::vector<Turn>& taken = placements.emplace_back();
    const double begin = now();
    do {
      taken.push_back(turns.Take(/*reversed=*/i % 2 == 1));
    } while (taken.size() < kFewestTurns || (taken.size() < kMostTurnsPlaced && now() - begin < share));
  }
  return TimingsOf(plan.protocol, placements);
}

}  // namespace mycc
